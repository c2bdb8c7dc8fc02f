//! `cryptmark drive run` on raw flash: what a host's writes do to its blocks.

use super::{
    HOT_COLD, RECORD, RunOptions, UNIFORM_WORKLOAD, erases, interrupted, open, unplayable,
};
use crate::cli::drive::{go_on, put_json};
use crate::cli::progress::Progress;
use crate::cli::{Failure, print, stop_on_signal};
use ::drive::flash::{FlashPreset, Wear, Worn};
use ::drive::preset::Preset;
use lab::system::simulated::preset;
use serde_json::json;
use std::fmt::Write as _;

/// Runs the command.
pub(super) fn run(options: &RunOptions) -> Result<(), Failure> {
    let flash = match preset(&options.device)? {
        Preset::Flash(flash) => flash,
        Preset::Ssd(_) | Preset::Hdd(_) => {
            return Err(Failure::new(
                2,
                format!("{} isn't a flash chip", options.device),
                "Choose ssd-uniform or a drive of kind flash. For SSDs use `drive lifetime` or `drive predict`.",
            ));
        }
    };
    options.refuse_what_is_no_chips()?;
    let stop = stop_on_signal()?;
    let wear = Wear::new(&flash)?;
    let (workload, worn) = match options.trace() {
        Some(path) => {
            options.refuse_what_is_no_traces()?;
            let name = path.display().to_string();
            let trace = open(path)?;
            let progress = Progress::requests(options.no_progress);
            let worn = wear.play(trace, &mut |done| {
                progress.filled(done);
                go_on(&stop)
            });
            progress.finish();
            let worn = worn.map_err(|error| unplayable(&error, &name))?;
            (name, worn)
        }
        None => {
            let hot = options.hot()?;
            let progress = Progress::pages(options.no_progress);
            let times = [options.warmup, options.measure];
            let worn = wear.uniform(hot, times, options.seed, &mut |done, total| {
                progress.counted(done, total);
                go_on(&stop)
            });
            progress.finish();
            let workload = match hot {
                Some(_) => HOT_COLD,
                None => UNIFORM_WORKLOAD,
            };
            (workload.to_owned(), worn?)
        }
    };
    tell(options, &flash, &workload, &worn.ok_or_else(interrupted)?)
}

/// Prints what came of it, or writes it as JSON.
fn tell(
    options: &RunOptions,
    flash: &FlashPreset,
    workload: &str,
    worn: &Worn,
) -> Result<(), Failure> {
    let Some(path) = &options.json else {
        return print(&text(options, flash, worn));
    };
    let record = json!({
        "schema": "cryptmark-drive/1",
        "device": options.device,
        "title": flash.title,
        "workload": workload,
        "blocks": flash.blocks,
        "pages_per_block": flash.pages_per_block,
        "page_bytes": flash.page.as_u64(),
        "hot": options.hot.map(|hot| json!({ "pages": hot.pages, "writes": hot.writes })),
        "warmup": options.warmup,
        "measure": options.measure,
        "seed": options.seed,
        "write_amplification": worn.write_amplification(),
        "host_pages": worn.host_pages,
        "flash_pages": worn.flash_pages,
        "erase_counts": worn.erases,
        "erase_cycles": flash.erase_cycles,
        "terabytes_written": worn.terabytes_written(flash),
    });
    put_json(path, RECORD, &record)
}

fn text(options: &RunOptions, flash: &FlashPreset, worn: &Worn) -> String {
    let mut text = format!("{}\n\nwrite amplification   ", flash.title);
    match worn.write_amplification() {
        Some(amplification) => {
            let _ = write!(text, "{amplification:.3}");
        }
        None => text.push_str("none: the host wrote nothing"),
    }
    let _ = write!(
        text,
        "\nwritten by the host   {} pages of {}\nwritten to the flash  {} pages\n{}\n",
        worn.host_pages,
        flash.page.display().iec(),
        worn.flash_pages,
        erases(&worn.erases),
    );
    match worn.terabytes_written(flash) {
        Some(terabytes) => {
            let _ = writeln!(
                text,
                "lasts                 {terabytes:.3} TB written, until the most worn block has had its {} erases",
                flash.erase_cycles
            );
        }
        None => text.push_str("lasts                 nothing was erased\n"),
    }
    let _ = writeln!(text, "seed                  {}", options.seed);
    text
}
