//! Runs on file systems as people compare them: one table a file system, a row
//! for each operation on each system, with real, system and crypto time.

use crate::advice::{self, Setup};
use crate::chart::bars::{Bar, Bars};
use crate::chart::{Chart, Label, Plot, palette};
use crate::document::{Block, Cell, Column, Figure, MARKDOWN, PAGE, Row, Rows, TERMINAL, Table};
use crate::exposure;
use crate::figure;
use crate::group;
use lab::file_system::Kernel;
use lab::record::{Run, Tier, Trial, Verdict};

/// Whether a run measured operations on file systems and nothing else.
pub(crate) fn is_fs(run: &Run) -> bool {
    !run.trials.is_empty() && run.trials.iter().all(|trial| trial.tier == Tier::Fs)
}

/// The meaning of the columns.
const NOTE: &str = "Times are of one operation: real is the median of all repetitions, the others \
                    are means. User and sys are the CPU time of the program that did it. Kernel \
                    threads are the kernel's own threads, which serve all programs. Crypto is part \
                    of sys, of the kernel threads or of the engine's server. A dash marks a time \
                    that was not counted.";

/// A table: a file system on devices of a size, alone or with others.
struct OnDevice<'a> {
    title: String,
    /// In the order of operations; the plain system comes first.
    rows: Vec<&'a Trial>,
}

/// Real kernels first, then the lab's; file systems in the order of the run.
fn tables(run: &Run) -> Vec<OnDevice<'_>> {
    let title = |trial: &Trial| {
        let lab = match Kernel::of(&trial.system).0 {
            Kernel::Here => "",
            Kernel::Lab => " in the lab kernel",
            Kernel::Lab6 => " in the lab kernel 6.1",
        };
        let cold = if trial.cold { "cold" } else { "warm" };
        let jobs = match trial.threads {
            None | Some(0 | 1) => String::new(),
            Some(jobs) => format!(", {jobs} jobs"),
        };
        format!(
            "{}{lab}, {}, {cold}{jobs}",
            trial.fs().unwrap_or(figure::UNKNOWN),
            figure::bytes(trial.device.size),
        )
    };
    let mut tables: Vec<OnDevice<'_>> = Vec::new();
    for trial in run.trials.iter().filter(|trial| !group::is_again(trial)) {
        let title = title(trial);
        match tables.iter_mut().find(|table| table.title == title) {
            Some(table) => table.rows.push(trial),
            None => tables.push(OnDevice {
                title,
                rows: vec![trial],
            }),
        }
    }
    for table in &mut tables {
        let mut operations: Vec<&str> = Vec::new();
        for trial in &table.rows {
            if !operations.contains(&trial.workload.as_str()) {
                operations.push(&trial.workload);
            }
        }
        // Stable: systems stay in the order of the plan.
        let place = |trial: &&Trial| operations.iter().position(|o| *o == trial.workload);
        let mut rows = std::mem::take(&mut table.rows);
        rows.sort_by_key(place);
        table.rows = rows;
    }
    tables
}

fn row(trial: &Trial) -> Row {
    let cost = trial.overhead.as_ref();
    let time = &trial.time_s;
    let sums = [time.user, time.sys, time.workers, time.crypto];
    let mut cells = vec![
        Cell::word(system(trial)),
        Cell::known(figure::time(trial.median_us()), trial.median_us()),
    ];
    cells.extend(
        sums.map(|sum| Cell::known(each(trial, sum), sum.map(|sum| sum / repetitions(trial)))),
    );
    cells.push(Cell::known(
        figure::overhead(trial),
        cost.map(|cost| cost.ratio.median),
    ));
    Row::of(trial, cells).hint(trial.cipher.as_deref())
}

fn repetitions(trial: &Trial) -> f64 {
    f64::from(trial.repetitions.max(1))
}

/// A time of all repetitions, of one.
fn each(trial: &Trial, sum: Option<f64>) -> String {
    let mean = sum.map(|sum| sum / repetitions(trial));
    match mean.filter(|mean| mean.is_finite()) {
        None => figure::UNKNOWN.to_owned(),
        // It was counted.
        Some(0.0) => "0".to_owned(),
        Some(seconds) => figure::duration_us(seconds * 1e6),
    }
}

fn system(trial: &Trial) -> String {
    let name = group::name(trial.cipher.as_deref(), trial.key_bits, kernel_free(trial));
    format!("{name}{}", options(trial))
}

/// The system's name without the kernel that it is in, which the title says.
fn kernel_free(trial: &Trial) -> &str {
    Kernel::of(&trial.system).1
}

/// dm-crypt's options, behind a comma.
fn options(trial: &Trial) -> String {
    match (&trial.backend, kernel_free(trial)) {
        (Some(options), "dm-crypt") => format!(", {options}"),
        _ => String::new(),
    }
}

/// The times of encryption alone: one row per operation on a system, one column
/// per cipher. `None` if fewer than two ciphers can be compared.
fn by_cipher(table: &OnDevice<'_>) -> Option<Table> {
    let mut ciphers: Vec<String> = Vec::new();
    let mut groups: Vec<Rows> = Vec::new();
    for trial in &table.rows {
        let (Some(cipher), Some(crypto)) = (&trial.cipher, trial.time_s.crypto) else {
            continue;
        };
        let cipher = figure::cipher(cipher, trial.key_bits);
        let column = ciphers
            .iter()
            .position(|known| *known == cipher)
            .unwrap_or_else(|| {
                ciphers.push(cipher);
                ciphers.len() - 1
            });
        if groups
            .last()
            .is_none_or(|group| group.title != trial.workload)
        {
            groups.push(Rows {
                title: trial.workload.clone(),
                ..Rows::default()
            });
        }
        let Some(Rows { rows, .. }) = groups.last_mut() else {
            continue;
        };
        let system = format!("{}{}", kernel_free(trial), options(trial));
        let place = rows
            .iter()
            .position(|row| row.cells[0].text == system)
            .unwrap_or_else(|| {
                rows.push(Row::new(vec![Cell::word(system)]));
                rows.len() - 1
            });
        let cells = &mut rows[place].cells;
        while cells.len() < column + 2 {
            cells.push(Cell::word(figure::UNKNOWN));
        }
        cells[column + 1] = Cell::word(each(trial, Some(crypto)));
    }
    for row in groups.iter_mut().flat_map(|group| &mut group.rows) {
        row.cells
            .resize_with(ciphers.len() + 1, || Cell::word(figure::UNKNOWN));
    }
    (ciphers.len() > 1).then(|| {
        let columns =
            std::iter::once(Column::word("system")).chain(ciphers.into_iter().map(Column::number));
        Table::new(columns.collect(), groups).grouped(Column::word("operation").on(MARKDOWN))
    })
}

/// The operations of a table, each with its rows.
fn by_operation<'t>(table: &OnDevice<'t>) -> Vec<(&'t str, Vec<&'t Trial>)> {
    let mut operations: Vec<(&str, Vec<&Trial>)> = Vec::new();
    for &trial in &table.rows {
        match operations.last_mut() {
            Some((name, rows)) if *name == trial.workload => rows.push(trial),
            _ => operations.push((&trial.workload, vec![trial])),
        }
    }
    operations
}

/// Which systems cost least, in the operation that each costs most in.
pub(crate) fn sentence(run: &Run) -> String {
    let setups = advice::setups(run);
    let Some((best, others)) = setups.split_first() else {
        return "No encrypted system was compared with the plain one.".to_owned();
    };
    if setups.iter().any(Setup::is_early) {
        return "Too few repetitions to compare encrypted systems: raise --repeat.".to_owned();
    }
    let (trial, ratio) = best.worst();
    let times = |ratio: f64| figure::number(1.0 / ratio);
    let place = format!(
        "{} on {}",
        trial.workload,
        trial.fs().unwrap_or(figure::UNKNOWN)
    );
    let verdict = trial.overhead.as_ref().map(|overhead| overhead.verdict);
    let told = match verdict {
        _ if advice::is_nothing(&best.overheads()) => "nothing measurable".to_owned(),
        Some(Verdict::Slower) => {
            format!("{place} takes {} × as long as plain", times(ratio.median))
        }
        Some(Verdict::Faster) => "it is never slower than plain".to_owned(),
        _ => format!(
            "{place} takes at most {} × as long as plain",
            times(ratio.low)
        ),
    };
    let tied = others.iter().filter(|other| other.may_be_as_good_as(best));
    let tied = match tied.count() {
        0 => "",
        1 => " One other system may cost no more.",
        _ => " Other systems may cost no more.",
    };
    format!(
        "{} costs least in its worst operation: {told}.{tied}{}",
        best.name,
        exposure::sentence(run)
    )
}

/// The charts and tables.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    let mut blocks = Vec::new();
    for table in tables(run) {
        let operations = by_operation(&table);
        let figures = operations.iter().map(|(operation, rows)| Figure {
            title: (*operation).to_owned(),
            note: String::new(),
            chart: parts_of(&format!("{operation} on {}", table.title), rows),
        });
        blocks.extend([
            Block::heading(3, &table.title).on(PAGE),
            Block::note(
                "Mean times of one operation, split into parts. Each chart has its own scale.",
            )
            .on(PAGE),
            Block::charts(figures.collect()),
            Block::heading(3, format!("{}: all figures", table.title)).on(PAGE),
            Block::heading(3, &table.title).on(TERMINAL | MARKDOWN),
        ]);
        let columns = vec![
            Column::word("system"),
            Column::number("real").alone(),
            Column::number("user").until(0),
            Column::number("sys").until(2),
            Column::number("kernel threads").until(1),
            Column::number("crypto").until(3),
            Column::word("against plain"),
        ];
        let groups = operations.iter().map(|(operation, rows)| Rows {
            title: (*operation).to_owned(),
            rows: rows.iter().map(|trial| row(trial)).collect(),
            ..Rows::default()
        });
        let all = Table::new(columns, groups.collect());
        let all = all.grouped(Column::word("operation").on(TERMINAL | MARKDOWN));
        blocks.push(Block::table(Table { once: true, ..all }));
        if let Some(by_cipher) = by_cipher(&table) {
            let heading = format!("{}: encryption alone, by cipher", table.title);
            blocks.push(Block::heading(4, heading).on(MARKDOWN | PAGE));
            blocks.push(Block::table(by_cipher).on(MARKDOWN | PAGE));
        }
    }
    blocks.push(Block::note(NOTE));
    blocks.extend(exposure::section(run));
    blocks
}

/// By how much the parts may exceed the whole, which others were measured with.
const SLACK: f64 = 1.02;

const PARTS: [(&str, palette::Colour); 3] = [
    ("crypto", palette::VERMILLION),
    ("other CPU time", palette::SKY),
    ("waiting", palette::GREY),
];

/// The time that an operation took on every system, split into its parts.
fn parts_of(title: &str, rows: &[&Trial]) -> Chart {
    let bars = rows.iter().map(|trial| {
        let (name, value) = (system(trial), figure::duration_us(mean(trial) * 1e6));
        let parts = PARTS.into_iter().zip(parts(trial));
        let parts = parts
            .map(|((_, colour), seconds)| (seconds, colour, String::new()))
            .collect();
        let tip = format!("{name}: {value}");
        let label = Label::of(trial, name, value, tip);
        Bar {
            label,
            parts,
            ..Bar::default()
        }
    });
    let bars = Bars {
        legend: PARTS.to_vec(),
        ..Bars::of(bars)
    };
    let about = "One bar per system, split into crypto, other CPU time and waiting.";
    Chart::new(format!("What {title} took"), about, Plot::Bars(bars))
}

/// Seconds of one repetition.
fn mean(trial: &Trial) -> f64 {
    trial.time_s.wall.unwrap_or_default() / repetitions(trial)
}

/// Seconds of each of [`PARTS`] in one repetition, which add up to its time. If
/// several cores worked at a time, only encryption is separated from the rest.
fn parts(trial: &Trial) -> [f64; 3] {
    let each = |sum: f64| sum / repetitions(trial);
    let (time, wall) = (&trial.time_s, mean(trial));
    if !wall.is_finite() || wall <= 0.0 {
        return [0.0; 3];
    }
    let crypto = each(time.crypto.unwrap_or(0.0)).clamp(0.0, wall);
    let busy = time.cpu.map(|cpu| each(cpu + time.workers.unwrap_or(0.0)));
    match busy.filter(|busy| *busy <= wall * SLACK) {
        Some(busy) => {
            let busy = busy.clamp(crypto, wall);
            [crypto, busy - crypto, wall - busy]
        }
        None => [crypto, wall - crypto, 0.0],
    }
}
