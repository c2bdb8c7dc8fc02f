//! Whether two classes of durations have one mean.

/// Mean and spread of two classes, updated one value at a time (Welford 1962).
#[derive(Clone, Copy, Default)]
struct Welch {
    count: [f64; 2],
    mean: [f64; 2],
    squares: [f64; 2],
}

/// Values of each class below which t says nothing.
const FEWEST: f64 = 200.0;

/// Croppings tried beside the whole.
const CROPPINGS: i32 = 100;

impl Welch {
    fn push(&mut self, class: bool, value: f64) {
        let class = usize::from(class);
        self.count[class] += 1.0;
        let distance = value - self.mean[class];
        self.mean[class] += distance / self.count[class];
        self.squares[class] += distance * (value - self.mean[class]);
    }

    /// Welch's t, without its sign.
    fn t(&self) -> f64 {
        if self.count.iter().any(|&count| count < FEWEST) {
            return 0.0;
        }
        let variance = |class: usize| {
            let count = self.count[class];
            self.squares[class] / (count - 1.0) / count
        };
        let error = (variance(0) + variance(1)).sqrt();
        match error > 0.0 {
            true => (self.mean[0] - self.mean[1]).abs() / error,
            false => 0.0,
        }
    }
}

/// The largest |t| between two classes of durations: of all of them, and of
/// those below each of many percentiles, because interrupts and neighbours
/// only ever make a duration longer.
///
/// Source: Reparaz, Balasch, Verbauwhede, Dude, is my code constant time?,
/// DATE 2017; the percentiles are those of their program.
pub fn largest_t(durations: &[(bool, u64)]) -> f64 {
    let mut sorted: Vec<u64> = durations.iter().map(|&(_, duration)| duration).collect();
    sorted.sort_unstable();
    let crop = |nth: i32| {
        let share = 1.0 - 0.5_f64.powf(10.0 * f64::from(nth) / f64::from(CROPPINGS));
        sorted[(share * (sorted.len() - 1) as f64) as usize]
    };
    let limits = (1..=CROPPINGS).map(crop).chain([u64::MAX]);
    let t_below = |limit: u64| {
        let mut welch = Welch::default();
        for &(class, duration) in durations {
            if duration < limit {
                welch.push(class, duration as f64);
            }
        }
        welch.t()
    };
    limits.map(t_below).fold(0.0, f64::max)
}
