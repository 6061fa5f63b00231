//! `cargo andweorc report --format html`, in a real browser where there is one.

use crate::common::{command, stderr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/shop.jsonl");

/// A browser that needs more has hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// The page in a file of this folder.
fn page(folder: &Path, profile: &str) -> PathBuf {
    let file = folder.join("report.html");
    let arguments = ["report", "--format", "html", "-o", file.to_str().unwrap(), profile];
    let output = command().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    file
}

fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        println!("skipped: no browser to test the page in; install Debian's package `chromium`");
    }
    found
}

/// The elements that a browser makes of the page at this fragment.
fn dom(browser: &Path, page: &Path, fragment: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dom.html");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", folder.path().join("user").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}{fragment}", page.display()))
        .stdout(fs::File::create(&out).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(ended(&mut child), "the browser hangs");
    fs::read_to_string(&out).unwrap()
}

fn ended(child: &mut Child) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

/// The texts of the elements that begin so, up to the next tag.
fn texts<'a>(dom: &'a str, begin: &str) -> Vec<&'a str> {
    dom.split(begin).skip(1).map(|rest| rest.split('<').next().unwrap()).collect()
}

/// The effects in the order of the ranking.
fn effects(dom: &str) -> Vec<&str> {
    texts(dom, r#"<span class="effect"><b>"#)
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let html = fs::read_to_string(page(folder.path(), PROFILE)).unwrap();
    let namespace = "http://www.w3.org/2000/svg";
    assert!(!html.replace(namespace, "").contains("://"), "it names another place");
    assert!(
        html.contains(
            "Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"
        )
    );
    // Two begin, data and script, and both end; that of the span's name is not among them.
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (2, 2));
    assert!(!html.contains("<b>&amp;"), "names are not mark-up");
}

#[test]
fn a_browser_shows_ranking_curves_and_experiments() {
    let Some(browser) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    let dom = dom(&browser, &page, "");
    assert!(dom.contains("<title>shop - andweorc</title>"), "{dom}");
    assert!(dom.contains("<strong>+29.7 %</strong> [28.9, 30.5]."), "{dom}");
    assert!(dom.contains("<code>audit</code>, with 70 % of the CPU, would change nothing."));
    assert_eq!(effects(&dom), ["+29.7 %", "0.0 %", "\u{2212}0.4 %", "\u{2212}15.0 %"]);
    assert_eq!(dom.matches("<svg class=\"curve ").count(), 5);
    // One experiment has no interval.
    assert_eq!(dom.matches("<polygon class=\"band\"").count(), 4);
    // Every experiment that was not spoiled is a dot in its curve.
    assert_eq!(dom.matches("<circle class=\"single\"").count(), 48);
    // The head, and 99 rows.
    let table = &dom[dom.find("class=\"experiments\"").unwrap()..];
    assert_eq!(table.matches("<tr").count(), 100);
    assert!(table.contains("left out: steal 7 %"));
    assert!(
        dom.contains("<li>the interval `query` was &lt;ended&gt; 3 times without a begin</li>")
    );
}

#[test]
fn in_a_browser_names_stay_text() {
    let Some(browser) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    let dom = dom(&browser, &page, "#q=script");
    let name = r#"<span class="name">&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;</span>"#;
    assert_eq!(dom.matches(name).count(), 2, "in the ranking and in its card: {dom}");
    assert_eq!(dom.matches("<script").count(), 2);
    assert!(dom.contains("<option value=\"1\">mail &lt;b&gt;&amp;amp;</option>"), "{dom}");
}

#[test]
fn in_a_browser_metric_speedup_point_and_search_can_be_chosen() {
    let Some(browser) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    let dom = |fragment| dom(&browser, &page, fragment);

    let p99 = dom("#metric=p99");
    assert!(p99.contains("<em>p99 latency</em>"), "{p99}");
    // A fall is a gain; what makes it rise is last of those that were measured.
    assert_eq!(effects(&p99)[0], "\u{2212}23.3 %");
    assert_eq!(*effects(&p99).last().unwrap(), "+18.5 %");
    assert!(p99.contains("row good") && p99.contains("row bad"));

    let at_25 = dom("#speedup=25&q=stock");
    assert_eq!(effects(&at_25), ["+9.9 %"]);
    assert!(at_25.contains("1 of 5 targets"));

    let mails = dom("#point=mail+%3Cb%3E%26amp%3B");
    assert!(mails.contains("<code>mail &lt;b&gt;&amp;amp;</code>"), "{mails}");
    assert!(!mails.contains("value=\"p99\""), "a progress point has no latency");

    assert!(dom("#q=nowhere").contains("No target matches the search."));
    assert!(dom("#metric=soon&speedup=7&target=99").contains("<em>throughput</em>"));
}

#[test]
fn in_a_browser_a_profile_without_points_says_what_to_do() {
    let Some(browser) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("empty.jsonl");
    let header = fs::read_to_string(PROFILE).unwrap().lines().next().unwrap().to_owned();
    fs::write(&profile, header + "\n").unwrap();
    let dom = dom(&browser, &page(folder.path(), profile.to_str().unwrap()), "");
    assert!(dom.contains("<p class=\"lead\">No progress point was hit"), "{dom}");
}

#[test]
fn the_source_line_is_shown_where_it_is_at_hand() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("Cargo.toml"), "").unwrap();
    let source: String = (1..=30).map(|i| format!("// here is line {i}\n")).collect();
    fs::write(folder.path().join("src/shop.rs"), source).unwrap();
    let profile = folder.path().join("run.jsonl");
    fs::copy(PROFILE, &profile).unwrap();
    let html = fs::read_to_string(page(folder.path(), profile.to_str().unwrap())).unwrap();
    assert!(html.contains("// here is line 12") && !html.contains("// here is line 20"));
}
