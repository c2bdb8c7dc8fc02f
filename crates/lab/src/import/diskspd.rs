//! Reads the XML that DiskSpd writes with `-Rxml`. `Profile` holds the requested settings, and a
//! `TimeSpan` holds the results of each time span.

use super::{ImportError, Measurement, Results, Work, device, rates};
use crate::record::{Device, Latency, Tier};
use roxmltree::{Document, Node};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

const TOOL: &str = "diskspd";

pub(super) fn read(text: &str) -> Result<Results, ImportError> {
    if !block::xml::is_simple(text) {
        return Err(roxmltree::Error::AttributesLimitReached.into());
    }
    let document = Document::parse(text)?;
    let mut texts = document.descendants().filter_map(|node| node.text());
    if texts.any(|text| text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c))) {
        return Err(ImportError::Control);
    }
    let root = document.root_element();
    let asked = path(root, &["Profile", "TimeSpans"]);
    let asked = asked.into_iter().flat_map(|spans| named(spans, "TimeSpan"));
    let mut measurements = Vec::new();
    // The same work in several time spans of one profile is repeated.
    let mut works: HashSet<Arc<Work>> = HashSet::new();
    for (asked, span) in asked.zip(named(root, "TimeSpan")) {
        measurements.extend(measured(asked, span).into_iter().map(|mut measured| {
            match works.get(&measured.work) {
                Some(same) => measured.work = Arc::clone(same),
                None => drop(works.insert(Arc::clone(&measured.work))),
            }
            measured
        }));
    }
    if measurements.is_empty() {
        return Err(ImportError::Empty { tool: TOOL });
    }
    let text = |names: &[&str]| Some(path(root, names)?.text()?.trim().to_owned());
    Ok(Results {
        tool: TOOL,
        version: text(&["System", "Tool", "Version"]),
        started: text(&["System", "RunTime"]).and_then(|time| started(&time)),
        left_out: Vec::new(),
        measurements,
    })
}

fn named<'a>(node: Node<'a, 'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children()
        .filter(move |child| child.has_tag_name(name))
}

fn path<'a>(node: Node<'a, 'a>, names: &[&str]) -> Option<Node<'a, 'a>> {
    let child =
        |node: Node<'a, 'a>, name: &&str| node.children().find(|child| child.has_tag_name(*name));
    names.iter().try_fold(node, child)
}

fn value<T: std::str::FromStr>(node: Node<'_, '_>, name: &str) -> Option<T> {
    path(node, &[name])?.text()?.trim().parse().ok()
}

/// `2023/01/20 12:34:56 GMT`.
fn started(time: &str) -> Option<String> {
    let time = time.strip_suffix("GMT")?.trim().replace('/', "-");
    let time: jiff::civil::DateTime = time.parse().ok()?;
    Some(format!("{time}Z"))
}

/// Bytes and requests.
#[derive(Default)]
struct Moved {
    bytes: u64,
    requests: u64,
}

/// The measurements of a time span: reads and writes of each of its targets.
fn measured(asked: Node<'_, '_>, span: Node<'_, '_>) -> Vec<Measurement> {
    let Some(seconds) = value(span, "TestTimeSeconds") else {
        return Vec::new();
    };
    let mut moved: BTreeMap<(&str, &'static str), Moved> = BTreeMap::new();
    for thread in span.children().filter(|node| node.has_tag_name("Thread")) {
        for target in thread.children().filter(|node| node.has_tag_name("Target")) {
            let place = path(target, &["Path"]).and_then(|path| path.text());
            for (op, bytes, requests) in [
                ("read", "ReadBytes", "ReadCount"),
                ("write", "WriteBytes", "WriteCount"),
            ] {
                let sum = moved.entry((place.unwrap_or_default(), op)).or_default();
                let add = |sum: &mut u64, name| {
                    *sum = sum.saturating_add(value(target, name).unwrap_or(0));
                };
                add(&mut sum.bytes, bytes);
                add(&mut sum.requests, requests);
            }
        }
    }
    let targets = path(asked, &["Targets"]);
    let targets = targets
        .into_iter()
        .flat_map(|targets| named(targets, "Target"));
    let mut count = 0;
    let mut by_place: BTreeMap<&str, Node<'_, '_>> = BTreeMap::new();
    for target in targets {
        count += 1;
        if let Some(place) = path(target, &["Path"]).and_then(|path| path.text()) {
            by_place.entry(place).or_insert(target);
        }
    }
    let shared = Shared {
        threads: value(asked, "ThreadCount").filter(|threads| *threads > 0),
        requests: value(asked, "RequestCount").filter(|requests| *requests > 0),
    };
    let measure = |((place, op), moved): ((&str, &'static str), Moved)| {
        let target = by_place.get(place)?;
        let (mb_s, iops) = rates(moved.bytes, moved.requests, seconds)?;
        // Percentiles are those of all targets together.
        let latency_us = latency(span, op).filter(|_| count == 1);
        let mut work = work(&shared, *target, op)?;
        if count > 1 {
            work.workload += &format!(" ({})", place.replace(['\n', '\r', '\t'], " "));
        }
        Some(Measurement {
            work: Arc::new(work),
            seconds: Some(seconds),
            bytes: Some(moved.bytes),
            requests: Some(moved.requests),
            mb_s,
            iops,
            latency_us,
            user: None,
            sys: None,
        })
    };
    let moved = moved.into_iter().filter(|(_, moved)| moved.requests > 0);
    moved.filter_map(measure).collect()
}

/// What the targets of a time span share, if they share it.
struct Shared {
    threads: Option<u32>,
    requests: Option<u32>,
}

fn work(shared: &Shared, target: Node<'_, '_>, op: &'static str) -> Option<Work> {
    let threads = shared.threads.or_else(|| value(target, "ThreadsPerFile"));
    // Threads that share their targets share the requests under way as well.
    let queue_depth = shared.requests.or_else(|| value(target, "RequestCount"));
    let block_bytes: u64 = value(target, "BlockSize").filter(|bytes| *bytes > 0)?;
    let is_random = value::<u64>(target, "Random").is_some_and(|alignment| alignment > 0);
    // `-rs`: the share of random requests, per cent.
    let pattern = match value::<u8>(target, "RandomRatio") {
        Some(share @ 1..=99) => format!("rnd{share}%-"),
        _ if is_random => "rnd".to_owned(),
        _ => "seq".to_owned(),
    };
    let is = |name: &str| path(target, &[name]).is_some_and(|node| node.text() == Some("true"));
    let cache = match is("DisableOSCache") || is("DisableAllCache") {
        true => "direct",
        false => "buffered",
    };
    let size = match block_bytes {
        mib if mib % (1 << 20) == 0 => format!("{}m", mib >> 20),
        kib if kib % 1024 == 0 => format!("{}k", kib >> 10),
        bytes => bytes.to_string(),
    };
    let known = |number: Option<u32>| number.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let (queues, lanes) = (known(queue_depth), known(threads));
    let mut workload = format!("{pattern}{size}-q{queues}t{lanes}");
    // A part of a mix is other work than reads or writes alone.
    match value::<u8>(target, "WriteRatio") {
        Some(share @ 1..=99) => workload += &format!("-w{share}"),
        Some(_) => {}
        None => workload += "-w?",
    }
    if op == "write" && is("WriteThrough") {
        workload += "-through";
    }
    let shown = target.children().filter(Node::is_element);
    let mut others: Vec<String> = shown.filter_map(|node| other(node, block_bytes)).collect();
    others.sort_unstable();
    for other in others {
        workload += &other;
    }
    Some(Work {
        tier: Tier::Block,
        cipher: None,
        key_bits: None,
        workload: format!("{workload}-{op}"),
        op,
        block_bytes: Some(block_bytes),
        queue_depth,
        threads,
        device: Device {
            size: value(target, "FileSize").unwrap_or_default(),
            ..device(cache, TOOL)
        },
    })
}

/// The settings of a target that [`work`] reads, or that say nothing of the work.
const READ: [&str; 10] = [
    "Path",
    "FileSize",
    "BlockSize",
    "WriteRatio",
    "RequestCount",
    "ThreadsPerFile",
    "Random",
    "RandomRatio",
    "DisableOSCache",
    "WriteThrough",
];

/// Any other setting of a target that is not DiskSpd's default, because work under another setting
/// is other work.
fn other(setting: Node<'_, '_>, block_bytes: u64) -> Option<String> {
    let name = setting.tag_name().name();
    if READ.contains(&name) {
        return None;
    }
    let parts = setting.descendants().flat_map(|node| {
        let inner = (node.is_element() && node != setting).then(|| node.tag_name().name());
        let attributes = node.attributes().map(|attribute| attribute.value());
        let text = node.is_text().then(|| node.text()).flatten();
        inner.into_iter().chain(attributes).chain(text)
    });
    let words: Vec<&str> = parts.flat_map(str::split_whitespace).collect();
    let value = words.join(",");
    let is_default = match name {
        "IOPriority" => value == "3",
        "Weight" => value == "1",
        "WriteBufferContent" => value == "Pattern,sequential",
        "StrideSize" => value == block_bytes.to_string(),
        _ => false,
    };
    match value.as_str() {
        _ if is_default => None,
        "" | "false" | "0" => None,
        "true" => Some(format!("-{}", name.to_lowercase())),
        value => Some(format!("-{}{value}", name.to_lowercase())),
    }
}

/// The latencies that `-L` adds, with a bucket for each percentile, in milliseconds.
fn latency(span: Node<'_, '_>, op: &str) -> Option<Latency> {
    let name = match op {
        "read" => "ReadMilliseconds",
        _ => "WriteMilliseconds",
    };
    let buckets = path(span, &["Latency"]);
    let at = |percentile: f64| {
        let mut buckets = buckets.iter().flat_map(Node::children);
        let bucket = buckets.find(|node| value(*node, "Percentile") == Some(percentile))?;
        value(bucket, name).map(|ms: f64| ms * 1e3)
    };
    Some(Latency {
        p50: at(50.0)?,
        p90: at(90.0)?,
        p99: at(99.0)?,
        p99_9: at(99.9)?,
        max: at(100.0)?,
        curve: Vec::new(),
    })
}
