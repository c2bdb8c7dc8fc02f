//! Inputs of some hundred kilobytes that would take minutes or gigabytes if anything in a parser
//! grew with the square of its input.

use crate::targets::{Target, import, plan, preset, trace};

/// Names, parsers and inputs.
pub fn inputs() -> Vec<(&'static str, Target, String)> {
    let long = "x".repeat(100_000);
    let numbered = |count: usize, one: &dyn Fn(usize) -> String| -> String {
        (0..count).map(one).collect::<Vec<_>>().join(",")
    };
    let fio = |version: &str, engine: &str| {
        let job = |nth| {
            let moved = r#"{"io_bytes":9,"total_ios":1,"runtime":1}"#;
            format!(r#"{{"jobname":"j{nth}","read":{moved}}}"#)
        };
        let jobs = numbered(2000, &job);
        let global = format!(r#"{{"ioengine":"{engine}"}}"#);
        format!(r#"{{"fio version":"fio-3{version}","global options":{global},"jobs":[{jobs}]}}"#)
    };
    let times = numbered(50_000, &|_| "1".into());
    let target = |nth: usize, more: &str| format!("<Target><Path>p{nth}</Path>{more}</Target>");
    let all = |more: &str| (0..3000).map(|nth| target(nth, more)).collect::<String>();
    let (asked, done) = (
        all("<BlockSize>4096</BlockSize>"),
        all("<ReadBytes>4096</ReadBytes><ReadCount>1</ReadCount>"),
    );
    let junk = "<x/>".repeat(50_000);
    let diskspd = format!(
        "<Results><Profile><TimeSpans><TimeSpan>{junk}<Targets>{asked}</Targets></TimeSpan>\
         </TimeSpans></Profile><TimeSpan><TestTimeSeconds>1</TestTimeSeconds>\
         <Thread>{done}</Thread></TimeSpan></Results>"
    );
    let in_results = |inside: String| format!("<Results>{inside}</Results>");
    let attributes: String = (0..100_000).map(|nth| format!("a{nth}='1' ")).collect();
    let head = "title = 'a plan'\nsize = '64 MiB'\nciphers = ['aes-xts-plain64']\n";
    let workload = "[[workload]]\nname = 'NAME'\npattern = 'random'\nop = 'read'\n\
                    block_size = '4 KiB'\nseconds = 0.1\n";
    let workloads: String = (0..3000)
        .map(|nth| workload.replace("NAME", &nth.to_string()))
        .collect();
    let product = format!(
        "title = 'a plan'\nsize = '64 MiB'\nciphers = [{}]\nkey_size = [{}]\nsector_size = [{}]\n\
         {workload}",
        numbered(5000, &|_| "'aes-xts-plain64'".into()),
        numbered(20_000, &|_| "256".into()),
        numbered(20_000, &|_| "4096".into()),
    );
    vec![
        ("an engine", import, fio("", &long)),
        ("a version", import, fio(&format!(".{long}"), "libaio")),
        (
            "a command",
            import,
            format!(r#"{{"results":[{{"command":"{long}","times":[{times}]}}]}}"#),
        ),
        ("lists in lists", import, "[".repeat(100_000)),
        ("objects in objects", import, r#"{"a":"#.repeat(50_000)),
        ("beginnings", import, "{\n".repeat(100_000)),
        ("objects on lines", import, "{\"a\":[\n".repeat(30_000)),
        (
            "remarks",
            import,
            format!("{{{}", "\n{\"a\":[1,\n1]".repeat(20_000)),
        ),
        ("targets", import, diskspd),
        (
            "tags in tags",
            import,
            format!("<Results>{}", "<a>".repeat(50_000)),
        ),
        (
            "pieces of text",
            import,
            in_results("<![CDATA[x]]>".repeat(20_000)),
        ),
        (
            "attributes",
            import,
            in_results(format!("<a {attributes}/>")),
        ),
        (
            "letters by number",
            import,
            in_results("&#97;".repeat(50_000)),
        ),
        (
            "lines of numbers",
            import,
            format!("MB/s DiskMark\n{}", "SEQ 1MiB\n".repeat(20_000)),
        ),
        ("workloads", plan, format!("{head}{workloads}")),
        ("encryptions", plan, product),
        (
            "values in values",
            plan,
            format!("a = {}", "[".repeat(100_000)),
        ),
        (
            "tables in tables",
            plan,
            format!("a = {}", "{a=".repeat(50_000)),
        ),
        ("a long key", plan, format!("{}a = 1", "a.".repeat(100_000))),
        (
            "a long name of a table",
            plan,
            format!("[{}a]", "a.".repeat(100_000)),
        ),
        (
            "tables",
            plan,
            (0..20_000).map(|nth| format!("[a.b{nth}]\n")).collect(),
        ),
        ("lists of tables", preset, "[[a]]\n".repeat(30_000)),
        (
            "a line",
            trace,
            format!("fio version 3 iolog\n{}", "0 ".repeat(100_000)),
        ),
    ]
}
