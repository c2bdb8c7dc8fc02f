//! Published figures next to ours. Machines differ, so only ratios of ciphers and of systems are
//! compared, and the order of ciphers.

mod section;

pub(crate) use section::section;

use crate::{figure, group};
use lab::record::{Interval, Measure, Paper, Published, Run, Tier, Trial, Verdict};
use lab::stats;

/// The figures of a document that a run repeats.
struct Beside<'a> {
    paper: &'a Paper,
    blocks: Vec<Block<'a>>,
    systems: Vec<Pair<'a>>,
    /// Published costs of encryption, with the cells that they are about.
    costs: Vec<(&'a Published, &'a Trial)>,
}

/// The ciphers of one workload, on one of the document's systems and machines.
struct Block<'a> {
    /// As the document has them, the fastest first.
    members: Vec<Member<'a>>,
    /// The noise floor of these cells: the difference between two measurements of the same target.
    floor: f64,
}

#[derive(Clone, Copy)]
struct Member<'a> {
    published: &'a Published,
    trial: &'a Trial,
}

/// Two of the document's systems with the same cipher under the same workload.
struct Pair<'a> {
    first: Member<'a>,
    second: Member<'a>,
}

/// Whether the document's order of ciphers is ours.
#[derive(Debug, PartialEq)]
enum Order {
    /// It is.
    Holds,
    /// These ciphers are the other way round here: the faster first.
    Reversed(Vec<(String, String)>),
    /// No pair is certainly reversed, but these pairs cannot be distinguished here.
    Undecided(Vec<(String, String)>),
}

impl<'a> Beside<'a> {
    /// `None` if the plan repeats no document.
    fn of(run: &'a Run) -> Option<Self> {
        let paper = run.paper.as_ref()?;
        let mut beside = Self {
            paper,
            blocks: Vec::new(),
            systems: Vec::new(),
            costs: Vec::new(),
        };
        let mut members: Vec<Member<'a>> = Vec::new();
        for trial in run.trials.iter().filter(|trial| !group::is_again(trial)) {
            for published in &trial.published {
                match published.measure {
                    Measure::Loss | Measure::Slowdown => beside.costs.push((published, trial)),
                    _ => members.push(Member { published, trial }),
                }
            }
        }
        for (at, &second) in members.iter().enumerate() {
            let firsts = members[..at]
                .iter()
                .filter(|first| first.pairs_with(&second));
            beside
                .systems
                .extend(firsts.map(|&first| Pair { first, second }));
            match beside.blocks.iter_mut().find(|block| block.takes(&second)) {
                Some(block) => block.members.push(second),
                None => beside.blocks.push(Block {
                    members: vec![second],
                    floor: floor(run, &second),
                }),
            }
        }
        for block in &mut beside.blocks {
            let order = |a: &Member<'_>, b: &Member<'_>| a.speed().total_cmp(&b.speed());
            block.members.sort_by(|a, b| order(b, a));
        }
        Some(beside)
    }

    /// In how many blocks the order holds.
    fn sentence(&self) -> Option<String> {
        let orders: Vec<Order> = self.blocks.iter().filter_map(Block::order).collect();
        let count = |is: fn(&Order) -> bool| orders.iter().filter(|order| is(order)).count();
        (!orders.is_empty()).then(|| {
            format!(
                "The document's order of ciphers holds here in {} of {} comparisons, differs in {} \
                 and is undecided in {}.",
                count(|order| *order == Order::Holds),
                orders.len(),
                count(|order| matches!(order, Order::Reversed(_))),
                count(|order| matches!(order, Order::Undecided(_))),
            )
        })
    }
}

/// The noise floor of the rates under a member's workload. Times within an
/// operation have none: the plain system, which is measured twice, does not
/// encrypt.
fn floor(run: &Run, member: &Member<'_>) -> f64 {
    let load = member.trial.load();
    let is_same = |trial: &&Trial| group::is_again(trial) && trial.load() == load;
    let again = run.trials.iter().find(is_same);
    let ratio = again
        .and_then(|again| again.overhead.as_ref())
        .map(|o| o.ratio);
    stats::noise_floor(match member.published.measure {
        Measure::Rate | Measure::Time => ratio,
        _ => None,
    })
}

impl<'a> Block<'a> {
    fn takes(&self, member: &Member<'a>) -> bool {
        let first = &self.members[0];
        let is_there = |known: &Member<'_>| known.published.cipher == member.published.cipher;
        first.is_of(member)
            && first.published.system == member.published.system
            && first.trial.system == member.trial.system
            && !self.members.iter().any(is_there)
    }

    /// `rand-4k-read, throughput: TrueCrypt, Western Digital HDD, Figure 2; here builtin tcrypt`.
    fn title(&self) -> String {
        let what = self.members[0].what();
        format!("{what}: {}; here {}", self.source(), self.ours())
    }

    /// The document's source of its figures.
    fn source(&self) -> String {
        let published = self.members[0].published;
        let there = [&published.system, &published.device, &published.figure];
        let words = there.into_iter().map(String::as_str);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.join(", ")
    }

    /// Our system and its format.
    fn ours(&self) -> String {
        let trial = self.members[0].trial;
        match &trial.format {
            Some(format) => format!("{} {format}", trial.system),
            None => trial.system.clone(),
        }
    }

    /// The document's cipher that the others are divided by.
    fn base(&self, paper: &Paper) -> Option<Member<'a>> {
        let is_base = |member: &&Member<'_>| member.published.cipher == paper.base;
        self.members.iter().find(is_base).copied()
    }

    /// `None` if no two ciphers have different published values.
    fn order(&self) -> Option<Order> {
        let mut reversed = Vec::new();
        let mut undecided = Vec::new();
        let mut pairs = 0;
        for (at, slower) in self.members.iter().enumerate() {
            for faster in &self.members[..at] {
                if faster.published.value == slower.published.value {
                    continue;
                }
                pairs += 1;
                let names = (faster.name(), slower.name());
                let ratio = stats::paired_ratio(&faster.speeds(), &slower.speeds());
                match ratio.map(|ratio| stats::verdict(ratio, self.floor)) {
                    Some(Verdict::Faster) => {}
                    Some(Verdict::Slower) => reversed.push((names.1, names.0)),
                    Some(Verdict::NotDistinguishable | Verdict::TooFew) | None => {
                        undecided.push(names)
                    }
                }
            }
        }
        (pairs > 0).then_some(match (reversed.is_empty(), undecided.is_empty()) {
            (false, _) => Order::Reversed(reversed),
            (true, false) => Order::Undecided(undecided),
            (true, true) => Order::Holds,
        })
    }

    /// The order in words.
    fn order_in_words(&self) -> Option<String> {
        let order = self.order()?;
        let mut there = self.members[0].name();
        for pair in self.members.windows(2) {
            let sign = match pair[0].published.value == pair[1].published.value {
                true => " = ",
                false => " > ",
            };
            there.push_str(sign);
            there.push_str(&pair[1].name());
        }
        let pairs = |pairs: &[(String, String)], word: &str| {
            let pairs: Vec<String> = pairs.iter().map(|(a, b)| format!("{a}{word}{b}")).collect();
            pairs.join(", ")
        };
        let here = match &order {
            Order::Holds => "yes".to_owned(),
            Order::Reversed(those) => format!("no: {}", pairs(those, " > ")),
            Order::Undecided(those) => format!("not distinguishable: {}", pairs(those, " and ")),
        };
        Some(format!("Fastest first, there: {there}. So here? {here}."))
    }
}

impl Member<'_> {
    /// Whether both members repeat the same figure, apart from the cipher and the system.
    fn is_of(&self, other: &Self) -> bool {
        fn what<'m>(member: &Member<'m>) -> impl PartialEq + use<'m> {
            let Member { published, trial } = *member;
            let figure = (&published.device, published.measure, &published.unit);
            (figure, trial.load(), &trial.format, trial.sector_bytes)
        }
        what(self) == what(other)
    }

    /// Whether two cells differ in the document's system and in nothing else.
    fn pairs_with(&self, other: &Self) -> bool {
        self.is_of(other)
            && self.published.cipher == other.published.cipher
            && self.published.system != other.published.system
            && self.trial.system != other.trial.system
    }

    /// `read-1m on ext2, crypto time`.
    fn what(&self) -> String {
        let fs = self.trial.fs();
        let fs = fs.map_or_else(String::new, |fs| format!(" on {fs}"));
        let measure = match self.published.measure {
            Measure::Rate => "throughput",
            Measure::Time => "time",
            Measure::Crypto => "crypto time",
            Measure::Sys => "system time",
            Measure::Loss => "loss of throughput",
            Measure::Slowdown => "longer time",
        };
        format!("{}{fs}, {measure}", self.trial.workload)
    }

    /// The cipher in the document's words, or in ours if the document has none.
    fn name(&self) -> String {
        match self.published.cipher.as_str() {
            "" => self.our_name(),
            cipher => cipher.to_owned(),
        }
    }

    /// The cipher as people call it.
    fn our_name(&self) -> String {
        match &self.trial.cipher {
            Some(cipher) => figure::cipher(cipher, self.trial.key_bits),
            None => "plain".to_owned(),
        }
    }

    /// The published figure as printed.
    fn there(&self) -> String {
        printed(self.published)
    }

    /// Larger is faster.
    fn speed(&self) -> f64 {
        match self.published.measure {
            Measure::Rate => self.published.value,
            _ => -self.published.value,
        }
    }

    /// The published measure of every repetition here: 10⁶ bytes a second, or seconds.
    fn figures(&self) -> Vec<f64> {
        let trial = self.trial;
        let operation = trial.operation();
        match self.published.measure {
            Measure::Rate => trial.samples_mb_s.clone(),
            Measure::Time if trial.tier == Tier::Fs => trial.samples_s().to_vec(),
            Measure::Time => {
                let rates = || trial.samples_mb_s.iter();
                let of = |bytes: u64| rates().map(|rate| bytes as f64 / (rate * 1e6)).collect();
                trial.block_bytes.map_or(Vec::new(), of)
            }
            Measure::Crypto => operation.map_or(Vec::new(), |o| o.samples_crypto_s.clone()),
            Measure::Sys => operation.map_or(Vec::new(), |o| o.samples_sys_s.clone()),
            Measure::Loss | Measure::Slowdown => Vec::new(),
        }
    }

    /// Those figures as speeds.
    fn speeds(&self) -> Vec<f64> {
        let figures = self.figures();
        match self.published.measure {
            Measure::Rate => figures,
            _ => figures.iter().map(|seconds| 1.0 / seconds).collect(),
        }
    }

    fn in_unit(&self, figure: Option<f64>) -> String {
        match (figure, self.published.measure) {
            (None, _) => figure::UNKNOWN.to_owned(),
            (Some(rate), Measure::Rate) => figure::with_unit(rate, "MB/s"),
            (Some(seconds), _) => figure::duration_us(seconds * 1e6),
        }
    }

    /// The median here.
    fn median(&self) -> String {
        self.in_unit(stats::median(&self.figures()))
    }

    /// The mean here, which most documents print.
    fn mean(&self) -> String {
        self.in_unit(self.mean_of_all())
    }

    fn mean_of_all(&self) -> Option<f64> {
        let figures = self.figures();
        let mean = figures.iter().sum::<f64>() / figures.len() as f64;
        Some(mean).filter(|_| !figures.is_empty())
    }

    /// Published, this ÷ `base`.
    fn ratio_there(&self, base: &Self) -> String {
        let ratio = self.published.value / base.published.value;
        match ratio.is_finite() {
            true => format!("{ratio:.2}"),
            false => figure::UNKNOWN.to_owned(),
        }
    }

    /// Here, this ÷ `base`, repetition by repetition.
    fn ratio(&self, base: &Self) -> Option<Interval> {
        stats::paired_ratio(&self.figures(), &base.figures()).filter(|ratio| figure::finite(*ratio))
    }

    fn ratio_here(&self, base: &Self) -> String {
        self.ratio(base).map_or_else(
            || figure::UNKNOWN.to_owned(),
            |Interval {
                 median, low, high, ..
             }| format!("{median:.2} ({low:.2}–{high:.2})"),
        )
    }
}

/// A published figure with its unit, as printed but for zeros at the end.
pub(crate) fn printed(published: &Published) -> String {
    format!("{} {}", published.value, published.unit)
}

/// The cost of encryption measured here, expressed like the published cost.
fn cost_here(published: &Published, trial: &Trial) -> String {
    let Some(overhead) = trial.overhead.as_ref().filter(|o| figure::finite(o.ratio)) else {
        return figure::UNKNOWN.to_owned();
    };
    if matches!(
        overhead.verdict,
        Verdict::NotDistinguishable | Verdict::TooFew
    ) {
        return figure::overhead(trial);
    }
    let cost = |ratio: f64| match published.measure {
        Measure::Slowdown => (1.0 / ratio - 1.0) * 100.0,
        _ => (1.0 - ratio) * 100.0,
    };
    let Interval {
        median, low, high, ..
    } = overhead.ratio;
    format!("{:.1} % ({:.1}–{:.1})", cost(median), cost(high), cost(low))
}
