//! Closed forms of write amplification, under uniform random writes of one page.
//!
//! α is physical ÷ logical pages, ρ = 1/α, b the pages of an erase block. They
//! hold in the limit of many blocks and are what the simulator is checked
//! against; they also say how two streams share the spare pages best.
//!
//! Sources: P. Desnoyers, "Analytic Models of SSD Write Performance" (2014), for
//! FIFO, greedy and hot and cold; B. Van Houdt, "A Mean Field Model for a Class
//! of Garbage Collection Algorithms" (2013), for random victims and choices;
//! T. Frankie, "Solid State Disk Object-Based Storage with Trim Commands"
//! (2012), for discards.

/// Steps of a bisection: more than a double has bits.
const STEPS: u32 = 100;

/// Cleaning the oldest block; also greedy in the limit of large blocks.
/// `alpha` is above 1.
pub fn fifo(alpha: f64) -> f64 {
    // x = α(1 − e⁻ˣ) has its other root at 0.
    let x = root(f64::MIN_POSITIVE, alpha, |x| alpha * -(-x).exp_m1() - x);
    alpha / x
}

/// Cleaning a random block.
pub fn random(alpha: f64) -> f64 {
    1.0 / (1.0 - 1.0 / alpha)
}

/// Cleaning the block with the fewest valid pages, of `pages_per_block`: the
/// limit of ever more choices.
pub fn greedy(alpha: f64, pages_per_block: u32) -> f64 {
    choices(alpha, pages_per_block, 1 << 20)
}

/// Desnoyers' form for the same, which is up to 4 % off where a block has 16
/// pages or fewer, and below 1 % from 32 on.
pub fn greedy_approximate(alpha: f64, pages_per_block: u32) -> f64 {
    let b = f64::from(pages_per_block);
    let k = 1.0 + 1.0 / (2.0 * b);
    let w = lambert_w0(-k * alpha * (-k * alpha).exp());
    let victim = 0.5 - b / alpha * w;
    b / (b - (victim - 1.0))
}

/// Cleaning the block with the fewest valid pages of `choices` random ones.
pub fn choices(alpha: f64, pages_per_block: u32, choices: u32) -> f64 {
    let rho = 1.0 / alpha;
    let d = f64::from(choices);
    // The mean of valid pages in a block rises with what cleaning costs.
    let missing = |amplification: f64| {
        let mut at_most = 1.0; // share of blocks with j valid pages and fewer
        let mut mean = 0.0;
        for j in (1..=pages_per_block).rev() {
            let j = f64::from(j);
            let with_j = root(0.0, at_most, |h| {
                let fewer: f64 = at_most - h;
                let chosen = -(d * (-fewer).ln_1p()).exp_m1();
                amplification * chosen - j * h / rho
            });
            mean += j * with_j;
            at_most -= with_j;
        }
        rho * f64::from(pages_per_block) - mean
    };
    root(1.0, 2.0 * random(alpha), missing)
}

/// Share of the logical pages in use where a share `discards` of the requests
/// are discards of a random page in use; below one half.
pub fn in_use(discards: f64) -> f64 {
    (1.0 - 2.0 * discards) / (1.0 - discards)
}

/// A part of the logical pages, and of the writes that go to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Of the logical pages, 0 to 1.
    pub pages: f64,
    /// Of the writes, 0 to 1.
    pub writes: f64,
}

/// Parts of different heat in one log that cleans its oldest block.
pub fn fifo_mixed(alpha: f64, shares: &[Share]) -> f64 {
    root(1.0, f64::MAX.sqrt(), |amplification| {
        let cost = |share: &Share| {
            let heat = share.writes / share.pages;
            share.writes / -(-heat * alpha / amplification).exp_m1()
        };
        shares.iter().map(cost).sum::<f64>() - amplification
    })
}

/// The share of all physical pages, 0 to 1, that the first of two separate logs must get for the
/// least writes in all.
pub fn best_split(alpha: f64, shares: [Share; 2]) -> f64 {
    let [first, second] = shares;
    let cost = |split: f64| separated(alpha, shares, split);
    // Both must hold their own pages.
    let (mut low, mut high) = (first.pages / alpha, 1.0 - second.pages / alpha);
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..STEPS {
        let width = (high - low) * golden;
        if cost(high - width) < cost(low + width) {
            high = low + width;
        } else {
            low = high - width;
        }
    }
    f64::midpoint(low, high)
}

/// Two logs of their own, of which the first has a share `split` of all
/// physical pages, each cleaning its oldest block.
pub fn separated(alpha: f64, shares: [Share; 2], split: f64) -> f64 {
    let [first, second] = shares;
    first.writes * fifo(split * alpha / first.pages)
        + second.writes * fifo((1.0 - split) * alpha / second.pages)
}

/// The principal branch of w·eʷ = z, for −1/e ≤ z < 0.
fn lambert_w0(z: f64) -> f64 {
    root(-1.0, 0.0, |w| z - w * w.exp())
}

/// Where `falling` crosses zero between `low`, where it is positive, and `high`.
fn root(mut low: f64, mut high: f64, falling: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        // The geometric mean finds its way through many orders of magnitude.
        let middle = match low > 0.0 && high / low > 4.0 {
            true => (low * high).sqrt(),
            false => f64::midpoint(low, high),
        };
        match falling(middle) > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64) {
        let digits = 5e-4;
        assert!((got - expected).abs() <= digits, "{got} for {expected}");
    }

    /// Spare pages, FIFO, greedy with 64 pages, random: the published table.
    #[test]
    fn published_table() {
        for (spare, oldest, emptiest, any) in [
            (0.0737, 7.459, 6.714, 14.569),
            (0.10, 5.677, 5.242, 11.0),
            (0.20, 3.188, 3.053, 6.0),
            (0.50, 1.716, 1.681, 3.0),
        ] {
            near(fifo(1.0 + spare), oldest);
            near(greedy_approximate(1.0 + spare, 64), emptiest);
            near(random(1.0 + spare), any);
        }
    }

    #[test]
    fn published_discards() {
        for (discards, expected) in [(0.0, 4.816), (0.05, 3.407), (0.1, 2.598)] {
            near(
                greedy_approximate(10.0 / 9.0 / in_use(discards), 64),
                expected,
            );
        }
    }

    /// The consequence for encryption: the FIFO limit with 7.37 % spare.
    #[test]
    fn published_policies() {
        let near = |got: f64, expected: f64| assert!((got - expected).abs() < 5e-3, "{got}");
        near(fifo(1.0737), 7.46);
        near(fifo(1.0737 / 0.8), 2.16);
        near(fifo(1.0737 / 0.5), 1.20);
        near(fifo(1.0737 / 0.75), 1.87);
    }

    #[test]
    fn choices_lie_between_random_and_greedy() {
        let alpha = 1.1;
        near(choices(alpha, 64, 1), random(alpha));
        let two = choices(alpha, 64, 2);
        let ten = choices(alpha, 64, 10);
        assert!(random(alpha) > two && two > ten && ten > greedy(alpha, 64));
    }

    #[test]
    fn both_forms_of_greedy_agree_for_usual_blocks() {
        for pages_per_block in [32, 64, 128, 256, 1024] {
            for spare in [0.05, 0.0737, 0.1, 0.2, 0.5] {
                let alpha = 1.0 + spare;
                let ratio =
                    greedy(alpha, pages_per_block) / greedy_approximate(alpha, pages_per_block);
                assert!(
                    (ratio - 1.0).abs() < 0.01,
                    "{pages_per_block} {spare}: {ratio}"
                );
            }
        }
    }

    #[test]
    fn equal_heat_is_no_heat() {
        let half = Share {
            pages: 0.5,
            writes: 0.5,
        };
        near(fifo_mixed(1.2, &[half, half]), fifo(1.2));
        near(best_split(1.2, [half, half]), 0.5);
        near(separated(1.2, [half, half], 0.5), fifo(1.2));
    }

    #[test]
    fn separated_streams_cost_less() {
        let hot = Share {
            pages: 0.2,
            writes: 0.8,
        };
        let cold = Share {
            pages: 0.8,
            writes: 0.2,
        };
        let split = best_split(1.1, [hot, cold]);
        let best = separated(1.1, [hot, cold], split);
        assert!(best < fifo_mixed(1.1, &[hot, cold]), "{best}");
        for other in [split - 0.01, split + 0.01] {
            assert!(separated(1.1, [hot, cold], other) > best);
        }
    }
}
