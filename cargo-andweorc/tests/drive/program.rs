//! A program that does what its arguments say, and writes a ready-made profile where one with
//! andweorc would write its own.

use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

unsafe extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let has = |wanted: &str| args.iter().any(|arg| arg == wanted);
    let value = |name: &str| args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
    fs::write("pid", process::id().to_string()).unwrap();
    if has("stubborn") {
        // SAFETY: SIGTERM (15) may be ignored (1), which runs no code.
        unsafe { signal(15, 1) };
    }
    if has("exit") {
        println!("can't find the configuration");
        process::exit(7);
    }
    thread::sleep(Duration::from_millis(300));
    fs::write("up", "").unwrap();
    let port = value("port").or(has("serve").then_some("0"));
    let _listener = port.map(|port| TcpListener::bind(format!("127.0.0.1:{port}")).unwrap());
    println!("now serving");
    if has("silent") {
        return wait();
    }
    let out = env::var("ANDWEORC_OUT").unwrap();
    let mut file = fs::File::create(&out).unwrap();
    let profile = include_str!("profile.jsonl");
    if has("short") {
        let time = env::var("ANDWEORC_DURATION").unwrap();
        let order = env::var("ANDWEORC_ORDER").unwrap_or_default();
        let mut times = fs::OpenOptions::new().create(true).append(true).open("times").unwrap();
        writeln!(times, "{time} {order}").unwrap();
        let lasted = value("lasted").unwrap();
        let ended = format!(r#""reason":"main returned","real_ns":{lasted}"#);
        let profile = profile.replace(r#""reason":"time","real_ns":20000000000"#, &ended);
        return file.write_all(profile.as_bytes()).unwrap();
    }
    if has("idle") {
        // The rows of a run in which nothing can be measured, its notes as they come.
        let header = profile.lines().next().unwrap();
        let note = r#"{"record":"note","at_ns":3,"text":"no request seen in the first 3 s"}"#;
        writeln!(file, "{header}\n{note}").unwrap();
        thread::sleep(Duration::from_millis(700));
        return writeln!(file, "{}", profile.lines().last().unwrap()).unwrap();
    }
    if has("own-session") {
        // The session that is started for it ends as it starts its own.
        let (header, end) = (profile.lines().next().unwrap(), profile.lines().last().unwrap());
        writeln!(file, "{header}\n{end}").unwrap();
        thread::sleep(Duration::from_millis(250));
        file = fs::File::create(&out).unwrap();
    }
    if let Ok(status) = env::var("CARGO_ANDWEORC_STATUS") {
        fs::write(status, "stock 50 % faster").unwrap();
    }
    let begin = Instant::now();
    for (i, line) in profile.lines().enumerate() {
        let due = Duration::from_millis(120 * i as u64);
        thread::sleep(due.saturating_sub(begin.elapsed()));
        if has("open") && line.contains(r#""record":"end""#) {
            return wait();
        }
        if has("crash") && line.contains(r#""record":"end""#) {
            process::abort();
        }
        writeln!(file, "{line}").unwrap();
    }
    if !has("ends") {
        wait();
    }
}

fn wait() {
    thread::sleep(Duration::from_secs(60));
}
