//! Every sub-command in the order in which they are used.

use crate::Shop;
use crate::common::{stderr, stdout};
use andweorc_profile::{PointKind, Profile, Run, TargetKind};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use tests_support::take_interrupts;

#[test]
fn every_command_does_its_part() {
    let shop = Shop::new("commands");
    checks_the_machine(&shop);
    profiles_and_keeps_a_baseline(&shop);
    reports_in_every_form(&shop);
    serves_the_page(&shop);
    tells_what_changed(&shop);
    compares_revisions_under_load(&shop);
    lists_and_merges(&shop);
    completes_and_explains(&shop);
}

fn checks_the_machine(shop: &Shop) {
    let output = shop.command(&["doctor"]).output().unwrap();
    // The machine may have its problems; the project has none.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let text = stdout(&output);
    let of = |what: &str| {
        text.lines().find(|line| line.get(9..).is_some_and(|it| it.starts_with(what))).expect(&text)
    };
    assert!(of("andweorc ").starts_with("ok ") && of("andweorc ").contains("used by shop"));
    assert!(of("tokio ").starts_with("ok "), "{text}");
    assert!(of("profiles ").starts_with("ok "), "{text}");
}

fn profiles_and_keeps_a_baseline(shop: &Shop) {
    let run = || shop.run("8s", "dev", &["--save-baseline", "main"], &[]);
    let output = shop.run_usable(&["shop.jsonl"], run);
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(out.contains("the shop is open\n"), "what the program prints is printed: {out}");
    assert!(out.contains("andweorc: shop on "), "{out}{err}");
    assert!(out.contains("  stock main.rs:"), "{out}{err}");
    assert!(err.contains("saved as the baseline `main`"), "{err}");
    let file = shop.profiles().join("shop.jsonl");
    assert!(err.contains(&format!("profile: {}", file.display())), "{err}");

    let profile = Profile::read(&file).unwrap();
    let [run] = &profile.runs[..] else { panic!("{} runs", profile.runs.len()) };
    assert_eq!((run.header.program.as_str(), run.torn), ("shop", false));
    assert!(run.header.tokio.is_some());
    let names = |kind| run.targets.iter().filter(move |it| it.kind == kind).map(|it| &*it.name);
    assert!(["price", "stock"].iter().all(|it| names(TargetKind::Span).any(|name| name == *it)));
    let sold = run.points.iter().find(|point| point.name == "sold").unwrap();
    assert_eq!((sold.kind, sold.rank), (PointKind::Progress, 0));
    let end = run.end.as_ref().expect("it was stopped when its profile had its end");
    assert!(["time", "settled"].contains(&&*end.reason), "{end:?}");
    assert!(run.experiments.iter().any(|one| one.points.iter().any(|it| it.count > 0)));
    let stock = run.targets.iter().find(|it| it.name == "stock").unwrap();
    assert!(run.experiments.iter().any(|one| one.target == Some(stock.id)), "{out}");
    let kept = fs::read(shop.profiles().join("baselines/main.jsonl")).unwrap();
    assert_eq!(kept, fs::read(&file).unwrap());
}

fn reports_in_every_form(shop: &Shop) {
    let newest = |format: &str| stdout(&shop.ok(&["report", "--format", format]));
    assert!(newest("text").starts_with("andweorc: shop on "));
    let json: serde_json::Value = serde_json::from_str(&newest("json")).unwrap();
    assert_eq!(json["points"][0]["name"], "sold");
    let targets = json["targets"].as_array().unwrap();
    assert!(!targets.is_empty() && targets.iter().all(|it| it["kind"] == "span"), "{json}");
    assert_eq!(targets[0]["effects"][0]["point_index"], 0);
    assert!(json["experiments"].as_u64().unwrap() > 0);
    assert!(newest("markdown").contains("| verdict | target |"));
    let csv = newest("csv");
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    assert!(rows.records().all(|row| row.is_ok()) && csv.lines().count() > 1, "{csv}");
    let coz = newest("coz");
    assert!(coz.starts_with("startup\ttime="), "{coz}");
    assert!(coz.contains("\nexperiment\tselected=src/main.rs:"), "{coz}");
    assert!(coz.contains("\nthroughput-point\tname=sold\tdelta="), "{coz}");

    let page = shop.folder.join("report.html");
    shop.ok(&["report", "--format", "html", "-o", page.to_str().unwrap()]);
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("<title>shop"), "{html}");
    assert!(html.contains("stock.lock().await"), "the source around a target is shown: {html}");
}

fn serves_the_page(shop: &Shop) {
    take_interrupts();
    let mut child = shop.command(&["view"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let host = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect(&line);
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("<title>shop"), "{answer}");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGINT as i32), "Ctrl-C ends it");
}

fn tells_what_changed(shop: &Shop) {
    shop.run_usable(&["shop.jsonl"], || shop.run("4s", "dev", &[], &["slower"]));
    let text = stdout(&shop.ok(&["diff", "--baseline", "main"]));
    assert!(text.contains("sold throughput"), "{text}");
    let json = stdout(&shop.ok(&["diff", "--baseline", "main", "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json.is_object(), "{json}");

    let ci = ["ci", "--baseline", "main", "--markdown", "comment.md", "--json", "result.json"];
    let output = shop.command(&ci).output().unwrap();
    let code = output.status.code().unwrap();
    assert!([0, 3, 4].contains(&code), "{code}: {}", stderr(&output));
    let read = |file: &str| fs::read_to_string(shop.folder.join(file)).unwrap();
    assert!(read("comment.md").starts_with("<!-- andweorc ci -->\n"));
    let result: serde_json::Value = serde_json::from_str(&read("result.json")).unwrap();
    assert_eq!(result["exit_code"], code);
}

fn compares_revisions_under_load(shop: &Shop) {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        for name in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{name}_NAME"), "t")
                .env(format!("GIT_{name}_EMAIL"), "t@localhost");
            // The same commit each time, and so what was built of it.
            git.env(format!("GIT_{name}_DATE"), "2026-01-01T00:00:00Z");
        }
        let output = git.current_dir(&shop.folder).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    };
    fs::remove_dir_all(shop.folder.join(".git")).ok();
    git(&["init", "-q"]);
    git(&["add", "Cargo.toml", "Cargo.lock", "src"]);
    git(&["commit", "-q", "-m", "x"]);
    let aside = shop.profiles().join("compare/build/a");
    if !aside.exists() {
        // Dependencies are the same wherever they are built: once will do.
        fs::create_dir_all(aside.parent().unwrap()).unwrap();
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(shop.profiles().join("build")).arg(&aside);
        assert!(copy.status().unwrap().success());
    }
    let run = || shop.run("4s", "dev", &["--compare", "HEAD", "--runs", "1"], &[]);
    let output = shop.run_usable(&["compare/a/01.jsonl", "compare/b/01.jsonl"], run);
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(err.matches("; load: target/andweorc/build/debug/shop load ").count(), 2, "{err}");
    assert!(out.contains("A: HEAD (shop, 1 run), B: the checkout (shop, 1 run)"), "{out}");
    assert!(out.contains("sold throughput"), "{out}");
    for side in ["a", "b"] {
        let profile = Profile::read(&shop.profiles().join(format!("compare/{side}/01.jsonl")));
        let runs = profile.unwrap().runs;
        let hits = |run: &Run| run.experiments.iter().any(|it| !it.points.is_empty());
        assert!(runs.iter().all(hits), "{side} was under load");
    }
}

fn lists_and_merges(shop: &Shop) {
    let text = stdout(&shop.ok(&["list"]));
    assert!(text.contains("Profiles in ") && text.contains("Baselines in "), "{text}");
    assert!(text.contains("price, stock"), "{text}");
    let output =
        shop.ok(&["merge", "target/andweorc/runs/all.jsonl", "main", "target/andweorc/shop.jsonl"]);
    assert!(stderr(&output).contains("2 runs in "), "{}", stderr(&output));
    let text = stdout(&shop.ok(&["report", "target/andweorc/runs/all.jsonl"]));
    assert!(text.contains(", 2 runs"), "{text}");
}

fn completes_and_explains(shop: &Shop) {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&shop.ok(&["completions", shell]));
        assert!(script.contains("save-baseline"), "{shell}: {script}");
        if shell == "bash" {
            let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(bash.wait().unwrap().success());
        }
    }
    let page = stdout(&shop.ok(&["man"]));
    assert!(page.contains(".TH cargo-andweorc 1") && page.contains("merge"), "{page}");
    shop.ok(&["man", "--out", "target/man"]);
    let pages = fs::read_dir(shop.folder.join("target/man")).unwrap().count();
    assert!(pages > 10, "{pages}");
}
