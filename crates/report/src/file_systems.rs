//! Runs on file systems as people compare them: one table a file system, a row
//! for each operation on each system, with real, system and crypto time.

use crate::figure;
use crate::group;
use crate::html::chart::parts;
use crate::html::table::{self, Cell};
use crate::markdown::escape;
use crate::text::Style;
use comfy_table::CellAlignment;
use lab::record::{Run, Tier, Trial, Verdict};
use maud::{Markup, html};

/// Whether a run measured operations on file systems and nothing else.
pub(crate) fn is_fs(run: &Run) -> bool {
    !run.trials.is_empty() && run.trials.iter().all(|trial| trial.tier == Tier::Fs)
}

/// Columns of the tables; the first two are words.
const COLUMNS: [&str; 8] = [
    "operation",
    "system",
    "real",
    "user",
    "sys",
    "kernel threads",
    "crypto",
    "against plain",
];

/// Columns that fit where the table does not: fewer and fewer.
const NARROWER: [&[usize]; 4] = [
    &[0, 1, 2, 4, 5, 6, 7],
    &[0, 1, 2, 4, 6, 7],
    &[0, 1, 2, 6, 7],
    &[0, 1, 2, 7],
];

/// What the columns mean.
const NOTE: &str = "Times are of one operation: real is the median of all repetitions, the others are means. \
user and sys are the CPU time of who did it, kernel threads that of the kernel's own, which work for \
everybody; crypto is part of sys, of the kernel threads or of the engine's server. A dash is what nobody counted.";

/// A table: a file system on devices of a size, alone or with others.
struct Table<'a> {
    title: String,
    /// In the order of operations; the plain system comes first.
    rows: Vec<&'a Trial>,
}

/// Real kernels first, then the lab's; file systems in the order of the run.
fn tables(run: &Run) -> Vec<Table<'_>> {
    let title = |trial: &Trial| {
        let lab = if trial.system.starts_with("lab:") {
            " in the lab kernel"
        } else {
            ""
        };
        let cold = if trial.cold { "cold" } else { "warm" };
        let jobs = match trial.threads {
            0 | 1 => String::new(),
            jobs => format!(", {jobs} jobs"),
        };
        format!(
            "{}{lab}, {}, {cold}{jobs}",
            trial.fs.as_deref().unwrap_or(figure::UNKNOWN),
            figure::bytes(trial.device.size),
        )
    };
    let mut tables: Vec<Table<'_>> = Vec::new();
    for trial in run.trials.iter().filter(|trial| !group::is_again(trial)) {
        let title = title(trial);
        match tables.iter_mut().find(|table| table.title == title) {
            Some(table) => table.rows.push(trial),
            None => tables.push(Table {
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

/// A row's cells; `same` is true where the row above is of the same operation.
fn cells(trial: &Trial, same: bool) -> [String; 8] {
    let each = |sum| each(trial, sum);
    let operation = match same {
        true => String::new(),
        false => trial.workload.clone(),
    };
    [
        operation,
        system(trial),
        figure::duration_us(trial.latency_us.p50),
        each(trial.time_s.user),
        each(trial.time_s.sys),
        each(trial.time_s.workers),
        each(trial.time_s.crypto),
        trial
            .overhead
            .as_ref()
            .map_or_else(String::new, figure::overhead),
    ]
}

/// A time of all repetitions, of one.
fn each(trial: &Trial, sum: Option<f64>) -> String {
    let mean = sum.map(|sum| sum / f64::from(trial.repetitions.max(1)));
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
    trial.system.strip_prefix("lab:").unwrap_or(&trial.system)
}

/// dm-crypt's options, behind a comma.
fn options(trial: &Trial) -> String {
    match (&trial.backend, kernel_free(trial)) {
        (Some(options), "dm-crypt") => format!(", {options}"),
        _ => String::new(),
    }
}

/// Encryption alone: an operation on a system in every row, a cipher in every
/// column.
struct ByCipher {
    ciphers: Vec<String>,
    /// Operation, system, and a time for each cipher.
    rows: Vec<[String; 2]>,
    times: Vec<Vec<String>>,
}

/// Nothing where there are no two ciphers to compare.
fn by_cipher(table: &Table<'_>) -> Option<ByCipher> {
    let mut found = ByCipher {
        ciphers: Vec::new(),
        rows: Vec::new(),
        times: Vec::new(),
    };
    for trial in &table.rows {
        let (Some(cipher), Some(crypto)) = (&trial.cipher, trial.time_s.crypto) else {
            continue;
        };
        let cipher = figure::cipher(cipher, trial.key_bits);
        let system = format!("{}{}", kernel_free(trial), options(trial));
        let row = [trial.workload.clone(), system];
        let column = found.ciphers.iter().position(|known| *known == cipher);
        let column = column.unwrap_or_else(|| {
            found.ciphers.push(cipher);
            found.ciphers.len() - 1
        });
        let place = found.rows.iter().position(|known| *known == row);
        let place = place.unwrap_or_else(|| {
            found.rows.push(row);
            found.times.push(Vec::new());
            found.rows.len() - 1
        });
        let times = &mut found.times[place];
        times.resize(times.len().max(column + 1), figure::UNKNOWN.to_owned());
        times[column] = each(trial, Some(crypto));
    }
    for times in &mut found.times {
        times.resize(found.ciphers.len(), figure::UNKNOWN.to_owned());
    }
    (found.ciphers.len() > 1).then_some(found)
}

/// What that table is called.
const BY_CIPHER: &str = "encryption alone, by cipher";

/// The operations of a table, each with its rows and their labels.
fn by_operation<'t>(table: &Table<'t>) -> Vec<(&'t str, Vec<(String, &'t Trial)>)> {
    let mut operations: Vec<(&str, Vec<(String, &Trial)>)> = Vec::new();
    for &trial in &table.rows {
        let row = (system(trial), trial);
        match operations.last_mut() {
            Some((name, rows)) if *name == trial.workload => rows.push(row),
            _ => operations.push((&trial.workload, vec![row])),
        }
    }
    operations
}

/// The rows with their cells.
fn lines(table: &Table<'_>) -> Vec<[String; 8]> {
    let mut above = "";
    table
        .rows
        .iter()
        .map(|trial| {
            let same = above == trial.workload;
            above = &trial.workload;
            cells(trial, same)
        })
        .collect()
}

/// Which systems cost least, in the operation that each costs most in.
pub(crate) fn sentence(run: &Run) -> String {
    let mut setups: Vec<(String, &Trial, f64)> = Vec::new();
    for trial in run.trials.iter().filter(|trial| !group::is_again(trial)) {
        let Some(overhead) = &trial.overhead else {
            continue;
        };
        if !figure::finite(overhead.ratio) || overhead.verdict == Verdict::NotDistinguishable {
            continue;
        }
        let name = system(trial);
        let ratio = overhead.ratio.median;
        match setups.iter_mut().find(|(known, ..)| *known == name) {
            Some(known) if known.2 > ratio => (known.1, known.2) = (trial, ratio),
            Some(_) => {}
            None => setups.push((name, trial, ratio)),
        }
    }
    setups.sort_by(|a, b| b.2.total_cmp(&a.2));
    let Some((name, trial, ratio)) = setups.first() else {
        return "No encrypted system can be told from the plain one here: raise --repeat, or stop other load."
            .to_owned();
    };
    let told = match ratio < &1.0 {
        true => format!("takes {} × as long as plain", figure::number(1.0 / ratio)),
        false => "is never slower than plain".to_owned(),
    };
    format!(
        "{name} costs least in its worst operation: {} on {} {told}.",
        trial.workload,
        trial.fs.as_deref().unwrap_or(figure::UNKNOWN)
    )
}

/// The tables on a terminal.
pub(crate) fn text(run: &Run, style: &Style) -> Vec<String> {
    let mut out = Vec::new();
    for table in tables(run) {
        style.wrap(&mut out, &table.title);
        let fits = |lines: &Vec<String>| {
            let width = |line: &String| line.chars().count();
            lines.iter().all(|line| width(line) <= style.columns())
        };
        let all: Vec<usize> = (0..COLUMNS.len()).collect();
        let laid_out = [all.as_slice()]
            .into_iter()
            .chain(NARROWER)
            .map(|columns| laid_out(&table, style, columns))
            .find(fits)
            .unwrap_or_else(|| stacked(&table, style));
        out.extend(laid_out.iter().map(|line| style.paint(line)));
        out.push(String::new());
    }
    style.wrap(&mut out, NOTE);
    out
}

fn laid_out(table: &Table<'_>, style: &Style, columns: &[usize]) -> Vec<String> {
    let header: Vec<&str> = columns.iter().map(|&place| COLUMNS[place]).collect();
    let mut drawn = style.table(&header);
    for cells in lines(table) {
        drawn.add_row(columns.iter().map(|&place| style.text(&cells[place])));
    }
    for (place, column) in columns.iter().enumerate() {
        if (2..7).contains(column)
            && let Some(column) = drawn.column_mut(place)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    drawn
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// No table, for what is too narrow.
fn stacked(table: &Table<'_>, style: &Style) -> Vec<String> {
    let mut out = Vec::new();
    for trial in &table.rows {
        let cells = cells(trial, false);
        style.wrap(
            &mut out,
            &format!("{}, {}: {}", cells[0], cells[1], cells[2]),
        );
        if !cells[7].is_empty() {
            style.wrap(&mut out, &format!("    {}", cells[7]));
        }
    }
    out
}

/// The tables as Markdown.
pub(crate) fn markdown(run: &Run) -> String {
    let mut out = String::new();
    for table in tables(run) {
        out.push_str(&format!(
            "\n## {}\n\n| {} |\n|---|---|---:|---:|---:|---:|---:|---|\n",
            escape(&table.title),
            COLUMNS.join(" | ")
        ));
        for cells in lines(&table) {
            let cells = cells.map(|cell| escape(&cell));
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        if let Some(by_cipher) = by_cipher(&table) {
            out.push_str(&format!(
                "\n### {}: {BY_CIPHER}\n\n| operation | system | {} |\n|---|---|{}\n",
                escape(&table.title),
                by_cipher.ciphers.join(" | "),
                "---:|".repeat(by_cipher.ciphers.len())
            ));
            for (row, times) in by_cipher.rows.iter().zip(&by_cipher.times) {
                let [operation, system] = row.each_ref().map(|cell| escape(cell));
                let times = times.join(" | ");
                out.push_str(&format!("| {operation} | {system} | {times} |\n"));
            }
        }
    }
    out + "\n" + &escape(NOTE) + "\n"
}

/// The charts and tables as sections of the page.
pub(crate) fn html(run: &Run) -> Markup {
    html! {
        @for table in tables(run) {
            section {
                h3 { (table.title) }
                p class="note" {
                    "Mean times of one operation in their parts. Each chart has its own scale."
                }
                div class="charts" {
                    @for (operation, rows) in by_operation(&table) {
                        figure {
                            figcaption { strong { (operation) } }
                            (parts::render(&format!("{operation} on {}", table.title), &rows))
                        }
                    }
                }
            }
            section {
                h3 { (table.title) ": all figures" }
                div class="scroll" { table class="ciphers sorts" {
                    (table::head(COLUMNS.into_iter().skip(1)))
                    @for (operation, rows) in by_operation(&table) {
                        tbody {
                            (table::group(COLUMNS.len() - 1, html! { (operation) }))
                            @for (_, trial) in rows { (row(trial)) }
                        }
                    }
                } }
            }
            @if let Some(by_cipher) = by_cipher(&table) { (ciphers_side_by_side(&table.title, &by_cipher)) }
        }
        p class="note" { (NOTE) }
    }
}

fn row(trial: &Trial) -> Markup {
    let each = |sum: Option<f64>| sum.map(|sum| sum / f64::from(trial.repetitions.max(1)));
    let values = [
        Some(trial.latency_us.p50),
        each(trial.time_s.user),
        each(trial.time_s.sys),
        each(trial.time_s.workers),
        each(trial.time_s.crypto),
        trial.overhead.as_ref().map(|cost| cost.ratio.median),
    ];
    let [_, name, texts @ ..] = cells(trial, true);
    let cells: Vec<Cell> = texts
        .into_iter()
        .zip(values)
        .map(|(text, value)| Cell::known(text, value))
        .collect();
    let columns = COLUMNS.into_iter().skip(2);
    table::row(
        trial,
        trial.cipher.as_deref(),
        html! { (name) },
        columns,
        &cells,
    )
}

fn ciphers_side_by_side(title: &str, by_cipher: &ByCipher) -> Markup {
    let mut above = "";
    let rows = by_cipher.rows.iter().zip(&by_cipher.times);
    let rows: Vec<_> = rows
        .map(|([operation, system], times)| {
            let begins = above != operation;
            above = operation;
            (begins, operation, system, times)
        })
        .collect();
    html! {
        section {
            h3 { (title) ": " (BY_CIPHER) }
            div class="scroll" { table class="ciphers" {
                thead { tr {
                    th scope="col" { "system" }
                    @for cipher in &by_cipher.ciphers { th scope="col" { (cipher) } }
                } }
                tbody {
                    @for (begins, operation, system, times) in rows {
                        @if begins {
                            tr class="group" {
                                th colspan=(by_cipher.ciphers.len() + 1) scope="rowgroup" { (operation) }
                            }
                        }
                        tr {
                            th scope="row" { (system) }
                            @for (cipher, time) in by_cipher.ciphers.iter().zip(times) {
                                td data-name=(cipher) { (time) }
                            }
                        }
                    }
                }
            } }
        }
    }
}
