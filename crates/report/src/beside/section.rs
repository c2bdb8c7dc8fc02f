//! Published figures next to ours, as a section.

use super::{Beside, Block as Ciphers, Member, cost_here, printed};
use crate::chart::dots::{Dot, Dots, Scale};
use crate::chart::{Chart, Label, Plot, palette};
use crate::document::{Block, Cell, Column, Figure, MARKDOWN, PAGE, Row, Rows, TERMINAL, Table};
use lab::record::{Published, Run, Trial};
use lab::stats;

const HEADING: &str = "Compared with the paper";

/// The section on the document that a run repeats; empty if it repeats none.
pub(crate) fn section(run: &Run) -> Vec<Block> {
    let Some(beside) = Beside::of(run) else {
        return Vec::new();
    };
    let (document, differs, base) = (
        &beside.paper.document,
        &beside.paper.differs,
        &beside.paper.base,
    );
    let mut blocks = vec![
        Block::text(format!("{HEADING}: {document}.")).on(TERMINAL),
        Block::heading(3, HEADING).on(MARKDOWN | PAGE),
        Block::text(format!("{document}. {differs}")).on(MARKDOWN),
        Block::text(document).on(PAGE),
        Block::note(differs).on(TERMINAL | PAGE),
    ];
    blocks.extend(beside.sentence().map(Block::text));
    if beside
        .blocks
        .iter()
        .any(|ciphers| ciphers.base(beside.paper).is_some())
    {
        let note = format!(
            "After each figure stands its ratio to {base}'s figure; our ratio has its 95 % \
             interval."
        );
        blocks.push(Block::note(note).on(TERMINAL));
    }
    blocks.extend(beside.in_lines());
    let figures: Vec<Figure> = beside
        .blocks
        .iter()
        .filter_map(|ciphers| beside.figure(ciphers))
        .collect();
    if !figures.is_empty() {
        let note = format!(
            "The diamond is the published ratio to {base}. The dot with its 95 % interval is our \
             ratio."
        );
        blocks.extend([Block::note(note).on(PAGE), Block::charts(figures)]);
    }
    for ciphers in &beside.blocks {
        let rows = beside.rows(ciphers);
        blocks.push(Block::heading(4, ciphers.title()).on(MARKDOWN));
        blocks.push(Block::table(Table::plain(beside.columns(), rows)).on(MARKDOWN));
        blocks.extend(
            ciphers
                .order_in_words()
                .map(|order| Block::text(order).on(MARKDOWN)),
        );
    }
    let groups = beside.blocks.iter().map(|ciphers| Rows {
        title: ciphers.title(),
        rows: beside.rows(ciphers),
        remark: ciphers.order_in_words(),
        ..Rows::default()
    });
    if !beside.blocks.is_empty() {
        blocks.push(Block::table(Table::new(beside.columns(), groups.collect())).on(PAGE));
    }
    let columns = |what: &'static str, of: &'static str| {
        vec![
            Column::word(what),
            Column::word(of),
            Column::number("there"),
            Column::number("here"),
        ]
    };
    for (title, columns, rows) in [
        ("Systems", columns("what", "systems"), beside.systems()),
        (
            "Against plain",
            columns("workload", "published"),
            beside.costs(),
        ),
    ] {
        if !rows.is_empty() {
            blocks.push(Block::heading(4, title).on(MARKDOWN | PAGE));
            blocks.push(Block::table(Table::plain(columns, rows)));
        }
    }
    blocks
}

impl<'a> Beside<'a> {
    fn columns(&self) -> Vec<Column> {
        let base = &self.paper.base;
        vec![
            Column::word("cipher"),
            Column::number("there"),
            Column::number(format!("÷ {base} there")),
            Column::number("here, median"),
            Column::number("mean"),
            Column::number(format!("÷ {base} here")),
        ]
    }

    /// The member by which the others of `ciphers` are divided; `None` for that
    /// member itself.
    fn base_of(&self, ciphers: &Ciphers<'a>, member: &Member<'a>) -> Option<Member<'a>> {
        let base = ciphers.base(self.paper);
        base.filter(|base| base.name() != member.name())
    }

    fn rows(&self, ciphers: &Ciphers<'a>) -> Vec<Row> {
        let rows = ciphers.members.iter().map(|member| {
            let base = self.base_of(ciphers, member);
            let there = base.map(|base| member.published.value / base.published.value);
            let here = base
                .and_then(|base| member.ratio(&base))
                .map(|ratio| ratio.median);
            let told = base.map(|base| (member.ratio_there(&base), member.ratio_here(&base)));
            let (ratio_there, ratio_here) = told.unwrap_or_default();
            let cells = vec![
                Cell::word(member.name()),
                Cell::number(member.there(), member.published.value),
                Cell::known(ratio_there, there),
                Cell::known(member.median(), stats::median(&member.figures())),
                Cell::known(member.mean(), member.mean_of_all()),
                Cell::known(ratio_here, here),
            ];
            Row::of(member.trial, cells)
        });
        rows.collect()
    }

    /// The same in lines, for a terminal, which has no room for tables of these.
    fn in_lines(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut above = String::new();
        for ciphers in &self.blocks {
            // Several of the document's drives may be compared with the same
            // cells.
            let what = format!("{}, {}", ciphers.members[0].what(), ciphers.ours());
            if what != above {
                let here = self.in_a_line(
                    ciphers,
                    Member::our_name,
                    Member::median,
                    Member::ratio_here,
                );
                blocks.push(Block::heading(4, &what));
                blocks.push(Block::text(format!("  here: {here}")));
                above = what;
            }
            let there = self.in_a_line(ciphers, Member::name, Member::there, Member::ratio_there);
            let order = ciphers
                .order_in_words()
                .map(|order| format!(". {order}"))
                .unwrap_or_default();
            blocks.push(Block::text(format!(
                "  {}: {there}{order}",
                ciphers.source()
            )));
        }
        blocks.into_iter().map(|block| block.on(TERMINAL)).collect()
    }

    /// `AES 0.5 Mb/s; Serpent 0.49 Mb/s, 0.98`: each cipher's figure, and its
    /// ratio to the base's.
    fn in_a_line(
        &self,
        ciphers: &Ciphers<'a>,
        name: fn(&Member<'a>) -> String,
        figure: fn(&Member<'a>) -> String,
        ratio: fn(&Member<'a>, &Member<'a>) -> String,
    ) -> String {
        let ciphers = ciphers.members.iter().map(|member| {
            let told = format!("{} {}", name(member), figure(member));
            match self.base_of(ciphers, member) {
                Some(base) => format!("{told}, {}", ratio(member, &base)),
                None => told,
            }
        });
        ciphers.collect::<Vec<_>>().join("; ")
    }

    /// A chart of the ratios to the base that are known both there and here.
    fn figure(&self, ciphers: &Ciphers<'a>) -> Option<Figure> {
        let rows = ciphers.members.iter().filter_map(|member| {
            let base = self.base_of(ciphers, member)?;
            let there = Some(member.published.value / base.published.value)
                .filter(|there| there.is_finite())?;
            let here = member.ratio(&base)?;
            let (name, low, high) = (member.name(), here.low, here.high);
            let there_in_words = format!("{there:.2} there, {:.2}", here.median);
            let tip = format!("{name}: {there_in_words} ({low:.2}–{high:.2}) here");
            let label = Label::of(member.trial, name, format!("{there_in_words} here"), tip);
            Some(Dot {
                other: Some((there, palette::GREY)),
                ..Dot::new(label, here.median, [low, high], palette::BLUE)
            })
        });
        let rows: Vec<Dot> = rows.collect();
        if rows.is_empty() {
            return None;
        }
        let about = "One row per cipher: a diamond at the published ratio, a dot with its 95 % \
                     interval at ours.";
        let plot = Plot::Dots(Dots::of(Scale::Ratio { most: 20.0 }, "", rows));
        let (title, note) = (ciphers.title(), String::new());
        let chart = Chart::new(&title, about, plot);
        Some(Figure { title, note, chart })
    }

    fn systems(&self) -> Vec<Row> {
        let rows = self.systems.iter().map(|pair| {
            let (first, second) = (pair.first, pair.second);
            let cells = vec![
                Cell::word(format!("{}, {}", first.what(), first.name())),
                Cell::word(format!(
                    "{} ÷ {}",
                    first.published.system, second.published.system
                )),
                Cell::number(
                    first.ratio_there(&second),
                    first.published.value / second.published.value,
                ),
                Cell::known(
                    first.ratio_here(&second),
                    first.ratio(&second).map(|ratio| ratio.median),
                ),
            ];
            Row::of(first.trial, cells)
        });
        rows.collect()
    }

    fn costs(&self) -> Vec<Row> {
        let row = |&(published, trial): &(&'a Published, &'a Trial)| {
            let member = Member { published, trial };
            // The smaller the ratio, the higher the cost.
            let cost = trial.overhead.as_ref().map(|cost| -cost.ratio.median);
            let of = format!(
                "{}, {}, {}",
                published.system,
                member.name(),
                published.figure
            );
            let cells = vec![
                Cell::word(member.what()),
                Cell::word(of),
                Cell::number(printed(published), published.value),
                Cell::known(cost_here(published, trial), cost),
            ];
            Row::of(trial, cells)
        };
        self.costs.iter().map(row).collect()
    }
}
