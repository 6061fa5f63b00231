//! `cargo andweorc report --format html`, in a real browser where there is one.

use crate::browser::{Browser, Look};
use crate::common::{command, stderr};
use std::fs;
use std::path::{Path, PathBuf};

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/shop.jsonl");

/// The page in a file of this folder.
fn page(folder: &Path, profile: &str) -> PathBuf {
    let file = folder.join("report.html");
    let arguments = ["report", "--format", "html", "-o", file.to_str().unwrap(), profile];
    let output = command().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    file
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
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    browser.open(&page, "", Look::Desktop);
    let dom = browser.dom();
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
fn a_browser_asks_for_nothing_and_finds_no_fault() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    browser.open(&page, "", Look::Desktop);
    let (requests, errors) = browser.requests_and_errors();
    let elsewhere: Vec<_> = requests.iter().filter(|url| !url.starts_with("data:")).collect();
    assert_eq!(elsewhere, [&format!("file://{}", page.display())]);
    assert!(errors.is_empty(), "{errors:?}");
    // What is not the page's own can't run in it.
    browser.eval("const s = document.createElement('script'); s.textContent = 'window.foreign = 1'; document.body.append(s)");
    assert!(browser.eval("window.foreign").is_null());
    assert!(!browser.requests_and_errors().1.is_empty(), "the policy tells");
}

#[test]
fn the_page_works_from_a_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&page(folder.path(), PROFILE), "", Look::Desktop);
    let focus = "document.activeElement.id || document.activeElement.value || document.activeElement.dataset.target || ''";
    let order: Vec<_> = (0..6)
        .map(|_| {
            browser.press("Tab");
            browser.eval(focus)
        })
        .collect();
    // The link that skips the controls, the controls, and the first target of the ranking.
    assert_eq!(order, ["", "point", "throughput", "0.75", "search", "0"]);

    for key in ["/", "a", "u", "d"] {
        browser.press(key);
    }
    let status = "document.getElementById('status').textContent";
    assert_eq!(browser.eval(focus), "search");
    assert_eq!(
        (browser.eval(status), browser.eval("location.hash")),
        ("1 of 5 targets".into(), "#q=aud".into())
    );
    browser.press("Escape");
    assert_eq!(browser.eval(status), "5 of 5 targets");

    browser.eval("document.querySelector('input[name=metric]:checked').focus()");
    for _ in 0..4 {
        browser.press("ArrowRight");
    }
    assert_eq!(browser.eval("document.querySelector('h2 em').textContent"), "p99 latency");
    assert_eq!(browser.eval(focus), "p99", "the focus stays where it was");

    browser.eval("document.querySelector('a.row').focus()");
    browser.press("ArrowDown");
    let second = browser.eval(focus);
    assert_ne!(second, "0");
    browser.press("Enter");
    assert_eq!(browser.eval(focus), format!("target-{}", second.as_str().unwrap()));
}

#[test]
fn the_page_fits_a_phone_and_follows_the_colour_scheme() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    let paper = "getComputedStyle(document.body).backgroundColor";
    browser.open(&page, "", Look::Phone);
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 360, "nothing sticks out");
    assert_eq!(browser.eval(paper), "rgb(250, 250, 248)");
    browser.open(&page, "", Look::Dark);
    assert_eq!(browser.eval(paper), "rgb(20, 22, 25)");
}

#[test]
fn in_a_browser_names_stay_text() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    browser.open(&page, "#q=script", Look::Desktop);
    let dom = browser.dom();
    let name = r#"<span class="name">&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;</span>"#;
    assert_eq!(dom.matches(name).count(), 2, "in the ranking and in its card: {dom}");
    assert_eq!(dom.matches("<script").count(), 2);
    assert!(dom.contains("<option value=\"1\">mail &lt;b&gt;&amp;amp;</option>"), "{dom}");
}

#[test]
fn in_a_browser_metric_speedup_point_and_search_can_be_chosen() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    let mut dom = |fragment| {
        browser.open(&page, fragment, Look::Desktop);
        browser.dom()
    };

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
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("empty.jsonl");
    let header = fs::read_to_string(PROFILE).unwrap().lines().next().unwrap().to_owned();
    fs::write(&profile, header + "\n").unwrap();
    browser.open(&page(folder.path(), profile.to_str().unwrap()), "", Look::Desktop);
    let dom = browser.dom();
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
