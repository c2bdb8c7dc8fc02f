//! The energy of a run whose machine has a sensor: one sentence, and a table.

use crate::advice;
use crate::ciphers;
use crate::document::{Block, Cell, Column, MARKDOWN, PAGE, Row, Rows, TERMINAL, Table};
use crate::figure;
use crate::group::{self, Group};
use lab::record::{Energy, EnergyCost, EnergyVerdict, Interval, Run, Trial};

/// The most that encryption takes, in words: `Encryption takes 0.8 J more a gigabyte (0.6–1.0).`
/// Nothing is said of a run without energy, or without plain storage.
pub(crate) fn sentence(run: &Run) -> Option<String> {
    let setups = advice::setups(run);
    let best = setups.first()?;
    let cost = |trial: &&Trial| {
        let cost = trial.energy.as_ref()?.against.as_ref()?;
        let cost = Some(cost).filter(|cost| group::is_unencrypted(&cost.system))?;
        Some((
            cost.more_j_per_gb.filter(|more| figure::finite(*more))?,
            cost.verdict,
        ))
    };
    let costs: Vec<(&Trial, Interval, EnergyVerdict)> = best
        .cells
        .iter()
        .filter_map(|trial| cost(trial).map(|(more, verdict)| (*trial, more, verdict)))
        .collect();
    let certain = costs
        .iter()
        .filter(|(.., verdict)| *verdict == EnergyVerdict::More);
    let most = certain.max_by(|(_, a, _), (_, b, _)| a.median.total_cmp(&b.median));
    let subject = match setups.len() {
        1 => "Encryption".to_owned(),
        _ => best.name.clone(),
    };
    Some(match (most, costs.len()) {
        (_, 0) => return None,
        (Some((_, more, _)), 1) => {
            format!(
                "{subject} takes {} more a gigabyte{}.",
                joules(more.median),
                ends(*more)
            )
        }
        (Some((trial, more, _)), _) => format!(
            "{subject} takes up to {} more a gigabyte{}, with {}.",
            joules(more.median),
            ends(*more),
            trial.workload
        ),
        (None, _) => format!("{subject} takes no more energy that could be measured."),
    })
}

/// The figures of every cell whose energy is known; empty if there is none.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    let Some(energy) = run.trials.iter().find_map(|trial| trial.energy.as_ref()) else {
        return Vec::new();
    };
    let groups = group::groups(&run.trials);
    let tables: Vec<Rows> = groups.iter().filter_map(rows).collect();
    let columns = vec![
        Column::word("system").bare(),
        Column::number("J/GB"),
        Column::number("mJ an operation").until(1),
        Column::word(match ciphers::is_bare(run) {
            true => "compared",
            false => "against plain",
        }),
        Column::word("more J/GB").until(0),
    ];
    let mut blocks = vec![Block::heading(3, "Energy")];
    blocks.extend(sentence(run).map(Block::text));
    blocks.push(Block::note(note(energy)));
    blocks.push(
        Block::table(Table::new(columns, tables).grouped(Column::word("workload").on(MARKDOWN)))
            .on(TERMINAL | MARKDOWN | PAGE),
    );
    blocks
}

fn note(energy: &Energy) -> String {
    format!(
        "Read from {}. The {} W that the machine takes at rest are not counted; every interval \
         contains their uncertainty.",
        energy.source,
        figure::interval(energy.idle_w)
    )
}

fn rows(group: &Group<'_>) -> Option<Rows> {
    let all = group.rows.iter().chain(&group.again);
    let rows: Vec<Row> = all
        .filter_map(|row| Some(self::row(&row.label, row.trial, row.trial.energy.as_ref()?)))
        .collect();
    (!rows.is_empty()).then(|| Rows {
        title: group.title(),
        rows,
        ..Rows::default()
    })
}

fn row(label: &str, trial: &Trial, energy: &Energy) -> Row {
    let figure = |value: Option<Interval>| {
        Cell::known(
            value.map_or_else(|| figure::UNKNOWN.to_owned(), figure::interval),
            value.map(|value| value.median),
        )
    };
    let cost = energy.against.as_ref();
    let ratio = cost.and_then(|cost| cost.ratio);
    let cells = vec![
        Cell::word(label),
        figure(energy.j_per_gb),
        figure(energy.mj_per_operation),
        Cell::known(
            cost.map_or_else(String::new, compared),
            ratio.map(|ratio| ratio.median),
        ),
        match cost {
            Some(cost) => figure(cost.more_j_per_gb),
            None => Cell::default(),
        },
    ];
    Row::of(trial, cells).hint(trial.cipher.as_deref())
}

/// The cost in words: `20.1 % more (18.3–22.4)`. Systems other than plain storage are named.
fn compared(cost: &EnergyCost) -> String {
    let text = difference(cost);
    match cost.verdict {
        _ if group::is_unencrypted(&cost.system) => text,
        EnergyVerdict::More | EnergyVerdict::Less => format!("{text} than {}", cost.system),
        EnergyVerdict::NotDistinguishable => format!("{text} from {}", cost.system),
        EnergyVerdict::TooFew => text,
    }
}

fn difference(cost: &EnergyCost) -> String {
    let Some(ratio) = cost.ratio.filter(|ratio| figure::finite(*ratio)) else {
        return match cost.verdict {
            EnergyVerdict::More => "more".to_owned(),
            EnergyVerdict::Less => "less".to_owned(),
            EnergyVerdict::NotDistinguishable => "not distinguishable".to_owned(),
            EnergyVerdict::TooFew => "too few".to_owned(),
        };
    };
    let more = |ratio: f64| figure::percent((ratio - 1.0) * 100.0);
    let less = |ratio: f64| figure::percent((1.0 - ratio) * 100.0);
    match cost.verdict {
        EnergyVerdict::More => format!(
            "{} % more ({}–{})",
            more(ratio.median),
            more(ratio.low),
            more(ratio.high)
        ),
        EnergyVerdict::Less => format!(
            "{} % less ({}–{})",
            less(ratio.median),
            less(ratio.high),
            less(ratio.low)
        ),
        EnergyVerdict::NotDistinguishable => {
            let spread = figure::percent(figure::spread(ratio) * 100.0);
            format!("not distinguishable (±{spread} %)")
        }
        EnergyVerdict::TooFew => "too few".to_owned(),
    }
}

fn joules(joules: f64) -> String {
    figure::with_unit(joules, "J")
}

/// ` (0.6–1.0)`; nothing of one value.
fn ends(interval: Interval) -> String {
    match interval.n {
        0 | 1 => String::new(),
        _ => format!(
            " ({}–{})",
            figure::number(interval.low),
            figure::number(interval.high)
        ),
    }
}
