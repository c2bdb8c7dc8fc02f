//! The figures as Markdown.

use std::fmt::Write as _;

use super::mca::{CORES, Core, Mca};
use super::peers::Peers;
use super::published::MEASURED;
use super::{Both, Comparison, Cost};

/// Libraries by their names, and by those that [`Comparison`] has.
const LIBRARIES: &[(&str, &str)] = &[("libgcrypt", "libgcrypt"), ("OpenSSL", "openssl")];

/// Every table, and what the figures were made with.
pub fn report(mca: &Mca, peers: &Peers, compared: &[Comparison]) -> Result<String, String> {
    let mut text = String::new();
    let versions = peers.versions().join(", ");
    let _ = writeln!(text, "{}; {versions}.\n", mca.version()?);
    text += &models(mca);
    text += "\n### The engine\n\n";
    text += &heading();
    for Comparison { work, engine, .. } in compared {
        text += &row(&work.name(), figures(engine));
    }
    for (name, library) in LIBRARIES {
        let with: Vec<_> = compared
            .iter()
            .filter_map(|compared| Some((compared, compared.peers.get(library)?)))
            .collect();
        if with.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {name}\n");
        text += &heading();
        for (compared, costs) in &with {
            text += &row(&title(compared), figures(costs));
        }
        let _ = writeln!(text, "\n### {name}'s figure divided by the engine's\n");
        text += &heading();
        for (compared, costs) in &with {
            text += &row(&compared.work.name(), ratios(costs, &compared.engine));
        }
    }
    let checks = checks(compared);
    if !checks.is_empty() {
        text += "\n### Models beside measurements of libgcrypt\n\n";
        text +=
            "| Cipher | Processor | Measured | Model | Modelled | Modelled ÷ measured | Commit |\n";
        text += "|---|---|---|---|---|---|---|\n";
        text += &checks;
    }
    let least = compared.iter().flat_map(coverages).fold(1.0, f64::min);
    let _ = writeln!(
        text,
        "\nAt least {:.1} % of the executed instructions were modelled.",
        100.0 * least
    );
    Ok(text)
}

/// Which processor's model stands for each core.
fn models(mca: &Mca) -> String {
    let mut text = "| Core | LLVM's model |\n|---|---|\n".to_owned();
    for (nth, core) in CORES.iter().enumerate() {
        let _ = writeln!(text, "| {} | {} |", core.name, mca.modelled(nth));
    }
    text
}

/// Rows of libgcrypt's modelled cycles beside those that its author has measured.
fn checks(compared: &[Comparison]) -> String {
    let mut text = String::new();
    for measured in MEASURED {
        let Some(costs) = compared
            .iter()
            .find(|compared| compared.work.name() == measured.work)
            .and_then(|compared| compared.peers.get("libgcrypt"))
        else {
            continue;
        };
        let [encrypt, decrypt] = measured.cycles;
        for name in measured.cores {
            let nth = CORES.iter().position(|core| core.name == *name);
            let modelled =
                |i: usize| costs[i].cycles[nth?].filter(|_| measured.cycles[i].is_some());
            let (one, other) = (modelled(0), modelled(1));
            let ratio = |modelled: Option<f64>, measured: Option<f64>| Some(modelled? / measured?);
            let _ = writeln!(
                text,
                "| {} | {} | {} | {name} | {} | {} | {} |",
                measured.work.split(" (").next().unwrap_or_default(),
                measured.processor,
                pair((encrypt, decrypt)),
                pair((one, other)),
                pair((ratio(one, encrypt), ratio(other, decrypt))),
                measured.commit,
            );
        }
    }
    text
}

/// The head of a table of [`columns`].
fn heading() -> String {
    let cores: Vec<&str> = CORES.iter().map(|Core { name, .. }| *name).collect();
    let line = "|---".repeat(CORES.len() + 2);
    let cores = cores.join(" | ");
    format!("| Cipher | Instructions | {cores} |\n{line}|\n")
}

fn row(name: &str, figures: impl Iterator<Item = String>) -> String {
    format!("| {name} | {} |\n", figures.collect::<Vec<_>>().join(" | "))
}

/// A library takes the processor's AES instructions, unless they are taken from it.
fn title(compared: &Comparison) -> String {
    let name = compared.work.name();
    let title = name.split(" (").next().unwrap_or(&name);
    match compared.work.without_aes() {
        true => format!("{title}, without AES instructions"),
        false => title.to_owned(),
    }
}

/// Instructions a byte, then cycles a byte on each core.
fn columns(cost: &Cost) -> impl Iterator<Item = Option<f64>> {
    let cycles = cost.cycles.iter().copied();
    std::iter::once(Some(cost.instructions)).chain(cycles)
}

fn figures(costs: &Both) -> impl Iterator<Item = String> {
    let [encrypt, decrypt] = costs;
    columns(encrypt).zip(columns(decrypt)).map(pair)
}

fn ratios(costs: &Both, engine: &Both) -> impl Iterator<Item = String> {
    let ratio = |i: usize| {
        let columns = columns(&costs[i]).zip(columns(&engine[i]));
        columns.map(|(peer, own)| Some(peer? / own?))
    };
    ratio(0).zip(ratio(1)).map(pair)
}

/// Encryption and decryption.
fn pair((encrypt, decrypt): (Option<f64>, Option<f64>)) -> String {
    format!("{} / {}", short(encrypt), short(decrypt))
}

/// Three digits.
fn short(figure: Option<f64>) -> String {
    match figure {
        None => "–".to_owned(),
        Some(figure) if figure >= 99.95 => format!("{figure:.0}"),
        Some(figure) if figure >= 9.995 => format!("{figure:.1}"),
        Some(figure) => format!("{figure:.2}"),
    }
}

fn coverages(compared: &Comparison) -> impl Iterator<Item = f64> {
    let engine = compared.engine.iter();
    let peers = compared.peers.values().flatten();
    engine.chain(peers).map(|cost| cost.coverage)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn figures_have_three_digits() {
        let figures = [Some(0.5), Some(9.996), Some(99.96), Some(1234.4), None];
        assert_eq!(figures.map(short), ["0.50", "10.0", "100", "1234", "–"]);
    }
}
