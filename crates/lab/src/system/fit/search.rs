//! Minimises the squares of residuals that a simulation gives.
//!
//! First, each number alone is tried at several multiples of its value, and the best of these tries
//! is taken. This finds numbers that are not a bottleneck and so show in no derivative. Then all
//! numbers are changed together by the Levenberg–Marquardt method, with differences for
//! derivatives. Both passes are repeated with smaller tries. Distance from the start counts a
//! little, so that the nearest of equally good places is found.

/// Maximum number of steps. The search ends earlier if a step gains nothing.
const STEPS: usize = 12;

/// Amounts added to a logarithm in the first tries and in the later ones. They are large enough to
/// show steps of a figure.
const TRIES: [&[f64]; 2] = [&[-2.3, -1.1, 1.1, 2.3], &[-0.5, 0.5]];

/// Maximum number of tries that are taken in a row.
const ROUNDS: usize = 4;

/// Share of the sum of squares that such a try must remove to be accepted.
const BELIEVED: f64 = 0.1;

/// Difference over which a derivative is taken. It is larger than the jump of a simulated figure
/// when one more request misses its revolution.
const DIFFERENCE: f64 = 0.04;

/// Maximum change of a logarithm in one step.
const STRIDE: f64 = 0.7;

/// A step that gains less than this share of the sum of squares is the last one.
const GAIN: f64 = 5e-3;

/// A sum of squares that is as good as none: 0.1 % in each of ten figures.
const NONE: f64 = 1e-5;

/// Weight of being e times the start, relative to being e times the wanted figure.
const PRIOR: f64 = 0.02;

/// The simulation: figures for given numbers.
type Figures<'a, E> = dyn FnMut(&[f64]) -> Result<Vec<f64>, E> + 'a;

/// The end of the search.
#[derive(Clone, Debug)]
pub struct Found {
    /// The place.
    pub place: Vec<f64>,
    /// The largest derivative of any figure by each coordinate, on the way.
    pub influence: Vec<f64>,
}

/// Finds the place, from `start` on, at which `figures` are nearest to `wanted`. If `figures`
/// refuses the start, the search ends with that error. Later it only avoids such a place, unless
/// the error interrupts the search. A number that no figure depends on keeps its value.
///
/// # Errors
/// The errors of `figures`.
pub fn least_squares<E: Interrupts>(
    start: &[f64],
    wanted: &[f64],
    figures: &mut Figures<'_, E>,
) -> Result<Found, E> {
    let goal = Goal { start, wanted };
    let mut found = Found {
        place: start.to_vec(),
        influence: vec![0.0; start.len()],
    };
    let mut there = figures(start)?;
    for tries in TRIES {
        there = alone(&goal, tries, &mut found, there, figures)?;
        there = together(&goal, &mut found, there, figures)?;
    }
    Ok(found)
}

/// Turns each number alone, as long as that gains; the figures then.
fn alone<E: Interrupts>(
    goal: &Goal<'_>,
    tries: &[f64],
    found: &mut Found,
    mut there: Vec<f64>,
    figures: &mut Figures<'_, E>,
) -> Result<Vec<f64>, E> {
    for _ in 0..ROUNDS {
        let squares = goal.squares(&found.place, &there);
        if squares < NONE {
            break;
        }
        let mut best = None;
        let mut least = squares * (1.0 - BELIEVED);
        for number in 0..found.place.len() {
            for times in tries {
                let mut next = found.place.clone();
                next[number] += times;
                let Some(tried) = possible(figures(&next))? else {
                    continue;
                };
                let slope = tried.iter().zip(&there).map(|(a, b)| (a - b) / times);
                note(&mut found.influence[number], slope);
                let squares = goal.squares(&next, &tried);
                if squares < least {
                    least = squares;
                    best = Some((next, tried));
                }
            }
        }
        let Some(best) = best else {
            break;
        };
        (found.place, there) = best;
    }
    Ok(there)
}

/// Turns all numbers together, as long as that gains; the figures then.
fn together<E: Interrupts>(
    goal: &Goal<'_>,
    found: &mut Found,
    mut there: Vec<f64>,
    figures: &mut Figures<'_, E>,
) -> Result<Vec<f64>, E> {
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let squares = goal.squares(&found.place, &there);
        if squares < NONE {
            break;
        }
        let slopes = slopes(&found.place, &there, figures)?;
        for (most, slope) in found.influence.iter_mut().zip(&slopes) {
            note(most, slope.iter().copied());
        }
        let mut gained = 0.0;
        while damping < 1e3 {
            let step = goal.step(&slopes, &found.place, &there, damping);
            let longest = step.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
            let shorter = STRIDE / longest.max(STRIDE);
            let parts = found.place.iter().zip(&step);
            let next: Vec<f64> = parts.map(|(x, d)| x + d * shorter).collect();
            if let Some(tried) = possible(figures(&next))? {
                gained = 1.0 - goal.squares(&next, &tried) / squares;
                if gained > 0.0 {
                    (found.place, there) = (next, tried);
                    damping = (damping / 10.0).max(1e-6);
                    break;
                }
            }
            damping *= 10.0;
        }
        if gained < GAIN {
            break;
        }
    }
    Ok(there)
}

/// Keeps the largest derivative.
fn note(most: &mut f64, slope: impl Iterator<Item = f64>) {
    *most = slope.fold(*most, |most, slope| most.max(slope.abs()));
}

/// The figures; `None` if such a place is impossible.
fn possible<E: Interrupts>(figures: Result<Vec<f64>, E>) -> Result<Option<Vec<f64>>, E> {
    match figures {
        Ok(figures) => Ok(Some(figures)),
        Err(error) if error.interrupts() => Err(error),
        Err(_) => Ok(None),
    }
}

/// Which errors end a search at any time.
pub trait Interrupts {
    /// Whether this is one.
    fn interrupts(&self) -> bool;
}

impl Interrupts for crate::error::LabError {
    fn interrupts(&self) -> bool {
        !std::error::Error::source(self).is_some_and(|cause| cause.is::<drive::DriveError>())
    }
}

/// The wanted figures, and the place from which the search starts.
struct Goal<'a> {
    start: &'a [f64],
    wanted: &'a [f64],
}

impl Goal<'_> {
    fn squares(&self, place: &[f64], there: &[f64]) -> f64 {
        let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
        let missing: f64 = there.iter().zip(self.wanted).map(square).sum();
        let far: f64 = place.iter().zip(self.start).map(square).sum();
        missing + PRIOR * PRIOR * far
    }

    /// Solves (JᵀJ + prior + damping)·step = Jᵀ(wanted − there) − prior·(place − start).
    fn step(&self, slopes: &[Vec<f64>], place: &[f64], there: &[f64], damping: f64) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let missing = self.wanted.iter().zip(there).map(|(w, t)| w - t);
        let missing: Vec<f64> = missing.collect();
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(slopes.len());
        for (number, slope) in slopes.iter().enumerate() {
            let mut row: Vec<f64> = slopes.iter().map(|other| dot(slope, other)).collect();
            row[number] += damping + PRIOR * PRIOR;
            let far = place[number] - self.start[number];
            row.push(dot(slope, &missing) - PRIOR * PRIOR * far);
            rows.push(row);
        }
        eliminate(rows)
    }
}

/// Derivatives of each figure by each coordinate, a row a coordinate.
fn slopes<E: Interrupts>(
    place: &[f64],
    there: &[f64],
    figures: &mut Figures<'_, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let mut slopes = Vec::with_capacity(place.len());
    for coordinate in 0..place.len() {
        let mut beside = |difference: f64| {
            let mut beside = place.to_vec();
            beside[coordinate] += difference;
            Ok::<_, E>((figures(&beside)?, difference))
        };
        let (figures, difference) = match beside(DIFFERENCE) {
            // The last place that can be.
            Err(error) if !error.interrupts() => beside(-DIFFERENCE)?,
            found => found?,
        };
        let slope = figures.iter().zip(there).map(|(a, b)| (a - b) / difference);
        slopes.push(slope.collect());
    }
    Ok(slopes)
}

/// Gauss's elimination of a positive definite matrix, whose last column is the
/// right side: no pivots are needed.
fn eliminate(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let count = rows.len();
    for place in 0..count {
        let pivot = rows[place].clone();
        for row in &mut rows[place + 1..] {
            let times = row[place] / pivot[place];
            for (value, above) in row.iter_mut().zip(&pivot) {
                *value -= times * above;
            }
        }
    }
    let mut solved = vec![0.0; count];
    for place in (0..count).rev() {
        let row = &rows[place];
        let known: f64 = (place + 1..count)
            .map(|other| row[other] * solved[other])
            .sum();
        solved[place] = (row[count] - known) / row[place];
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LabError;

    /// Of two rates, the lesser is seen; a third number is not.
    #[test]
    fn what_is_seen_is_found_and_the_rest_stays() {
        let mut figures = |x: &[f64]| -> Result<Vec<f64>, LabError> {
            Ok(vec![
                x[0] - x[1],
                (x[0].exp() + x[1].exp()).ln(),
                x[0].min(x[1]),
            ])
        };
        let there = [3.0, 1.5, 9.0];
        let wanted = figures(&there).expect("no error");
        let found = least_squares(&[0.5, 0.7, 2.0], &wanted, &mut figures).expect("no error");
        assert!((found.place[0] - 3.0).abs() < 0.01, "{found:?}");
        assert!((found.place[1] - 1.5).abs() < 0.01, "{found:?}");
        assert_eq!((found.place[2], found.influence[2]), (2.0, 0.0));
    }

    /// A place that cannot be is gone around.
    #[test]
    fn what_cannot_be_is_not_gone_to() {
        let mut refused = 0;
        let mut figures = |x: &[f64]| match x[0] {
            far if far > 1.0 => {
                refused += 1;
                Err(LabError::from(drive::DriveError::NoSpare {
                    spare: 0,
                    needed: 1,
                }))
            }
            near => Ok(vec![near]),
        };
        let found = least_squares(&[0.5], &[1.4], &mut figures).expect("it goes around");
        assert!((0.9..=1.0).contains(&found.place[0]), "{found:?}");
        assert!(refused > 0);
    }
}
