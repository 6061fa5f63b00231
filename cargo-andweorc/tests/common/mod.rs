//! Helpers that the tests of the command share.

mod process;

pub(crate) use process::{command, stderr, stdout};

/// A profile in which `stock` at 50 % brings +20 %, and `audit`, which burns more, nothing. Its
/// load is closed.
pub(crate) fn profile() -> String {
    let mut lines = vec![
        r#"{"record":"header","schema":1,"program":"shop","build_id":null,"host":"here","cores":2,"andweorc":"0.1.0","tokio":null,"duration_ns":30000000000,"speedups":[0.5],"targets":[],"points":[],"start_unix_ms":0}"#.to_owned(),
        r#"{"record":"target","id":1,"kind":"span","name":"stock","file":"src/shop.rs","line":12}"#.to_owned(),
        r#"{"record":"target","id":2,"kind":"task","name":"audit","file":"src/shop.rs","line":40}"#.to_owned(),
        r#"{"record":"target","id":9,"kind":"probe","name":"everything","file":null,"line":null}"#.to_owned(),
        r#"{"record":"point","id":1,"kind":"progress","name":"checkout","file":null,"line":null,"rank":0}"#.to_owned(),
        r#"{"record":"samples","real_ns":1000,"cpu_ns":1000,"source":"timed","targets":[{"target":1,"busy_ns":200,"count":1},{"target":2,"busy_ns":700,"count":1}],"lost":0}"#.to_owned(),
    ];
    let mut seq = 0;
    let mut hold = |target: &str, speedup: f64, count: u64| {
        let delay = (speedup * 4e8) as u64;
        lines.push(format!(
            r#"{{"record":"experiment","seq":{seq},"target":{target},"speedup":{speedup},"start_ns":{},"real_ns":{},"delay_ns":{delay},"points":[{{"point":1,"count":{count}}}],"spoiled":null}}"#,
            seq * 2_000_000_000_u64,
            1_000_000_000 + delay
        ));
        seq += 1;
    };
    hold("null", 0.0, 10_000);
    for round in 0..4 {
        if round < 2 {
            hold("9", 0.15, 10_010 + 10 * round);
        }
        hold("1", 0.5, 12_000 + 10 * round);
        hold("null", 0.0, 10_000 + 5 * round);
        hold("2", 0.5, 10_010 - 3 * round);
        hold("null", 0.0, 10_000 - 5 * round);
    }
    lines.push(
        r#"{"record":"end","reason":"time","real_ns":20000000000,"experiments":19,"spoiled":0,"lost_samples":0,"lost_records":0}"#.to_owned(),
    );
    lines.join("\n") + "\n"
}
