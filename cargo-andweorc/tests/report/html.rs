//! `cargo andweorc report --format html`, in a real browser where there is one.

mod wall;

use crate::browser::{Browser, Look};
use crate::common::{command, stderr, stdout};
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
    texts(dom, r#"<span class="effect" role="cell"><b>"#)
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
    assert!(
        dom.contains("<strong>+29.7 %</strong> [29.3, 30.1], from 600&nbsp;/s to 778&nbsp;/s."),
        "{dom}"
    );
    assert!(dom.contains("<code>audit</code>, with 70 % of the CPU, would change nothing."));
    assert_eq!(effects(&dom), ["+29.7 %", "0.0 %", "\u{2212}0.4 %", "\u{2212}15.0 %"]);
    assert_eq!(dom.matches("<svg class=\"curve ").count(), 5);
    // The scatter of one experiment is known from the others.
    assert_eq!(dom.matches("<polygon class=\"band\"").count(), 5);
    // Every experiment that was not discarded is a dot in its curve.
    let dots = texts(&dom, "<path class=\"singles\" d=\"").join("");
    assert_eq!(dots.matches("h0").count(), 48);
    let rows = "document.querySelectorAll('.experiments tbody tr').length";
    assert_eq!(browser.eval(rows), 0, "what is closed has no rows");
    browser.eval("document.querySelector('#experiments summary').click()");
    browser.eval("new Promise(requestAnimationFrame)");
    assert_eq!(browser.eval(rows), 50);
    browser.eval("document.querySelector('.more:not([hidden])').click()");
    assert_eq!(browser.eval(rows), 100);
    browser.eval("document.querySelector('.more:not([hidden])').click()");
    assert_eq!(browser.eval(rows), 101);
    let dom = browser.dom();
    let table = &dom[dom.find("class=\"experiments\"").unwrap()..];
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
    let order: Vec<_> = (0..11)
        .map(|_| {
            browser.press("Tab");
            browser.eval(focus)
        })
        .collect();
    // First the link that skips the controls, then the controls, the picture and the columns.
    let expected = [
        "",
        "point",
        "throughput",
        "0.75",
        "search",
        "",
        "sort-rank",
        "sort-target",
        "sort-share",
        "sort-effect",
        "sort-verdict",
    ];
    assert_eq!(order, expected);
    browser.press("Tab");
    assert_eq!(browser.eval(focus), "0");

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

    browser.eval("document.querySelector('a.open').focus()");
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

/// The names of the targets, in the order that they are shown.
const NAMES: &str = "[...document.querySelectorAll('.rows .row .name')].map((name) => name.textContent.slice(0, 5))";

#[test]
fn headline_ranking_and_verdicts_follow_metric_and_point() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    let lead = "document.querySelector('.lead').textContent";
    let chips = "[...document.querySelectorAll('.rows .chip')].map((chip) => chip.textContent)";
    browser.open(&page, "", Look::Desktop);
    assert!(
        browser
            .eval(lead)
            .as_str()
            .unwrap()
            .contains("throughput of checkout would change by +29.7 %")
    );
    browser.open(&page, "#metric=p99", Look::Desktop);
    let said = browser.eval(lead);
    assert!(
        said.as_str()
            .unwrap()
            .starts_with("If stock were 75 % faster, the p99 latency of checkout"),
        "{said}"
    );
    assert!(browser.eval(chips).as_array().unwrap().contains(&"hurts".into()));
    // Another point, which another target has the surest effect on.
    browser.open(&page, "#point=mail+%3Cb%3E%26amp%3B", Look::Desktop);
    let said = browser.eval(lead);
    assert!(said.as_str().unwrap().starts_with("If `=1+1`, \"q\""), "{said}");
    assert!(said.as_str().unwrap().contains("the throughput of mail"), "{said}");
    let verdicts = browser.eval(chips);
    let expected = ["matters", "matters", "inconclusive", "inconclusive", "hurts"];
    assert_eq!(verdicts, serde_json::json!(expected));
}

#[test]
fn every_choice_has_an_address_and_back_returns_to_the_one_before() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), PROFILE);
    browser.open(&page, "", Look::Desktop);
    let hash = |browser: &mut Browser| browser.eval("location.hash").as_str().unwrap().to_owned();
    browser.eval("document.querySelector('input[value=p99]').click()");
    browser.eval("document.getElementById('sort-share').click()");
    browser.eval("document.querySelector('a.open').click()");
    browser.eval("document.querySelector('input[name=speedup][value=\"0.25\"]').click()");
    browser.press("/");
    for key in ["a", "u"] {
        browser.press(key);
    }
    let mut addresses = vec![hash(&mut browser)];
    let titles = "[document.querySelector('h2 em').textContent, document.querySelector('.card.chosen')?.id ?? '', document.getElementById('search').value]";
    let there = browser.eval(titles);
    for _ in 0..5 {
        browser.eval("new Promise((back) => { addEventListener('popstate', back, { once: true }); history.back(); })");
        addresses.push(hash(&mut browser));
    }
    let expected = [
        "#metric=p99&speedup=25&q=au&sort=-share&target=task+audit",
        "#metric=p99&speedup=25&sort=-share&target=task+audit",
        "#metric=p99&sort=-share&target=task+audit",
        "#metric=p99&sort=-share",
        "#metric=p99",
        "",
    ];
    assert_eq!(addresses, expected);
    assert_eq!(browser.eval(titles), serde_json::json!(["throughput", "", ""]));
    // A link that was sent shows the same.
    browser.open(&page, expected[0], Look::Desktop);
    assert_eq!(browser.eval(titles), there);
    assert_eq!(there[0], "p99 latency");
    assert_eq!(
        there[1],
        "target-".to_owned()
            + browser.eval("document.querySelector('a.open').dataset.target").as_str().unwrap()
    );
}

#[test]
fn columns_are_sorted_by_click_and_by_key() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&page(folder.path(), PROFILE), "", Look::Desktop);
    let sorted = "[...document.querySelectorAll('[aria-sort]:not([aria-sort=none])')].map((head) => head.textContent.slice(0, 3) + head.ariaSort)";
    assert_eq!(browser.eval(sorted), serde_json::json!(["#\u{25b4}ascending"]));
    browser.eval("document.getElementById('sort-share').focus()");
    browser.press("Enter");
    assert_eq!(browser.eval(sorted), serde_json::json!(["of descending"]));
    assert_eq!(browser.eval(NAMES)[0], "audit", "it has most of the CPU");
    assert_eq!(browser.eval("document.activeElement.id"), "sort-share", "the focus stays");
    browser.press("Enter");
    assert_eq!(browser.eval(sorted), serde_json::json!(["of ascending"]));
    assert_eq!(browser.eval(NAMES)[0], "shop:");
    browser.eval("document.getElementById('sort-target').click()");
    assert_eq!(browser.eval(NAMES).as_array().unwrap().last().unwrap(), "stock");
}

#[test]
fn verdicts_are_explained_without_a_pointer() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&page(folder.path(), PROFILE), "", Look::Phone);
    browser.eval("document.querySelector('.rows .chip').focus()");
    browser.press("Enter");
    let shown = "document.querySelector('#why:popover-open')?.textContent ?? ''";
    let why = browser.eval(shown);
    assert!(
        why.as_str().unwrap().starts_with(
            "stock: mattersFaster, it raises the throughput of checkout. At 75 % faster"
        ),
        "{why}"
    );
    assert_eq!(
        browser.eval("document.getElementById('why').getBoundingClientRect().right <= innerWidth"),
        true
    );
    browser.press("Escape");
    assert_eq!(browser.eval(shown), "");
    assert_eq!(
        browser.eval("document.activeElement.className"),
        "chip matters",
        "the focus returns"
    );
    assert!(
        browser.dom().contains("Faster, it changes nothing. At 75 % faster"),
        "in the card it stands in full"
    );
}

#[test]
fn pictures_need_nothing_of_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&page(folder.path(), PROFILE), "", Look::Desktop);
    browser.eval("window.saved = []; window.real = URL.createObjectURL.bind(URL); URL.createObjectURL = (blob) => { saved.push(blob); return real(blob); }");
    browser.eval("document.querySelectorAll('.title .quiet, .card .quiet').forEach((button) => button.click())");
    assert_eq!(browser.eval("saved.length"), 6, "the ranking, and each of five curves");
    for i in 0..2 {
        let picture = browser.eval(&format!("saved[{i}].text()"));
        let picture = picture.as_str().unwrap();
        assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{picture}");
        assert!(
            picture.contains("fill=\"rgb(13, 118, 110)\"") && picture.contains("stock"),
            "{picture}"
        );
        assert!(!picture.contains("class=") && !picture.contains("var("), "{picture}");
        let drawn = browser.eval(&format!(
            "saved[{i}].text().then((text) => new DOMParser().parseFromString(text, 'image/svg+xml').querySelector('parsererror') === null)"
        ));
        assert_eq!(drawn, true, "it is XML");
    }
    let (_, errors) = browser.requests_and_errors();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_thousand_targets_are_few_nodes() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut lines: Vec<String> =
        fs::read_to_string(PROFILE).unwrap().lines().map(str::to_owned).collect();
    let measured = |line: &String| line.contains(r#""target":1,"speedup""#);
    let experiment = lines.iter().find(|line| measured(line)).unwrap().clone();
    let rest = lines.split_off(7);
    for id in 100..1_100 {
        lines.push(format!(r#"{{"record":"target","id":{id},"kind":"span","name":"part{id}","file":"src/shop.rs","line":{id}}}"#));
    }
    lines.extend(rest);
    let end = lines.pop().unwrap();
    for id in 100..1_100 {
        lines.push(experiment.replace(r#""target":1,"#, &format!(r#""target":{id},"#)));
    }
    lines.push(end);
    let profile = folder.path().join("many.jsonl");
    fs::write(&profile, lines.join("\n") + "\n").unwrap();
    browser.open(&page(folder.path(), profile.to_str().unwrap()), "", Look::Desktop);
    let nodes = "document.querySelectorAll('*').length";
    let status = "document.getElementById('status').textContent";
    assert_eq!(browser.eval(status), "1005 of 1005 targets");
    let few = |browser: &mut Browser| {
        assert!(browser.eval(nodes).as_u64().unwrap() < 2_000, "{}", browser.eval(nodes))
    };
    few(&mut browser);
    // The last row comes into view by a key, and has its focus.
    browser.eval("document.querySelector('a.open').focus()");
    browser.press("End");
    browser.eval("new Promise(requestAnimationFrame)");
    assert_eq!(browser.eval("document.activeElement.closest('.row').ariaRowIndex"), "1006");
    few(&mut browser);
    browser.press("/");
    for key in ["p", "a", "r", "t", "1", "0", "9", "9"] {
        browser.press(key);
    }
    assert_eq!(browser.eval(status), "1 of 1005 targets");
    browser.press("Escape");
    assert_eq!(browser.eval(status), "1005 of 1005 targets");
    // A target far below the first has its card all the same.
    browser.eval("document.querySelector('.ranking').scrollTop = 1e6");
    browser.eval("new Promise((then) => setTimeout(then, 100))");
    browser.eval("[...document.querySelectorAll('a.open')].at(-1).click()");
    assert_eq!(browser.eval("document.querySelector('.card').classList.contains('chosen')"), true);
    few(&mut browser);
}

#[test]
fn a_profile_without_targets_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("short.jsonl");
    let kept = |line: &&str| !line.contains(r#""record":"experiment""#);
    let lines: Vec<String> =
        fs::read_to_string(PROFILE).unwrap().lines().filter(kept).map(str::to_owned).collect();
    fs::write(&profile, lines.join("\n") + "\n").unwrap();
    let page = page(folder.path(), profile.to_str().unwrap());
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains(r#""dead_end":{"what":"No target was tested.","todo":["#), "{html}");
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page, "", Look::Desktop);
    let todo = browser.eval("document.querySelector('main').textContent");
    let todo = todo.as_str().unwrap();
    assert!(
        todo.starts_with("No target was tested.Give the program more time: --duration 2m."),
        "{todo}"
    );
    assert!(todo.contains("--targets stock. Seen were stock, audit, "), "{todo}");
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
    let file = fs::canonicalize(folder.path().join("src/shop.rs")).unwrap();
    let address = format!(r#""editor":"vscode://file{}:12""#, file.display());
    assert!(html.contains(&address), "{address} is not in {html}");
    let arguments = ["report", "--format", "html", "--editor", "none"];
    let output = command().args(arguments).arg(&profile).output().unwrap();
    assert!(!stdout(&output).contains("vscode:"));
}
