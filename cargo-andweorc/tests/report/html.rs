//! `cargo andweorc report --format html`, in a real browser where there is one.

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

/// The profile of the other tests, with the wall time of stacks.
const WALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/wall.jsonl");

/// A record of single requests.
const EXAMPLES: &str = include_str!("../fixtures/examples.jsonl");

/// A profile with wall time and single requests, in a file of this folder.
fn with_examples(folder: &Path) -> PathBuf {
    let file = folder.join("examples.jsonl");
    fs::write(&file, fs::read_to_string(WALL).unwrap() + EXAMPLES).unwrap();
    file
}

#[test]
fn requests_are_shown_span_by_span_and_followed_from_a_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), with_examples(folder.path()).to_str().unwrap());
    browser.open(&page, "", Look::Desktop);
    let link = browser.eval("document.getElementById('link-requests').parentNode.textContent");
    let lengths = ": p50 2.00 ms, p99 4.38 ms, max 9.00 ms, before the first experiment";
    assert_eq!(link, format!("Single requests, span by span{lengths}"));
    browser.eval("document.getElementById('link-requests').click()");
    assert_eq!(browser.eval("document.getElementById('tab-answer').hidden"), true);
    let chosen = "document.getElementById('request').selectedOptions[0].textContent";
    assert_eq!(browser.eval(chosen), "checkout (40)");
    assert_eq!(
        browser.eval("decodeURIComponent(location.hash)"),
        "#request=checkout+src/shop.rs:10"
    );
    let heads = "[...document.querySelectorAll('.trace-card h3')].map((head) => head.textContent)";
    assert_eq!(
        browser.eval(heads),
        serde_json::json!([
            "A usual one p50 of 40 is 2.01 ms",
            "A slow one p99 of 40 is 4.38 ms",
            "The slowest the slowest of 40"
        ])
    );
    let words = browser.eval("document.querySelector('.trace-card:nth-child(2) .why').textContent");
    assert_eq!(
        words,
        "4.38 ms, 38 % waiting for stock keeper in stock, 16 % waiting for something unknown in \
         </script><script>alert(1)</script>, 15 % running in stock"
    );
    // The rows are a tree, and the bars of a row lie where its intervals are.
    let rows = "[...document.querySelectorAll('#trace-0 [role=treeitem]')].map((row) => row.getAttribute('aria-level') + row.firstChild.textContent).join()";
    assert_eq!(
        browser.eval(rows),
        "1checkout,2stock,3db; query,2payment,3charge card,2</script><script>alert(1)</script>"
    );
    let bar = "(() => { const row = document.querySelectorAll('#trace-0 [role=treeitem]')[1]; const bars = row.querySelector('svg').getBoundingClientRect(); \
               const box = row.querySelector('.state-4').getBoundingClientRect(); return [(box.left - bars.left) / bars.width, box.width / bars.width].map((x) => x.toFixed(3)).join() })()";
    // From 150 to 900 of 2200 us: a span outlives the request.
    assert_eq!(browser.eval(bar), "0.068,0.341");
    browser.eval("document.querySelector('#trace-0 [role=treeitem]').focus()");
    let told = "document.querySelector('.trace-told').textContent";
    for (key, begin) in [
        ("ArrowDown", "stock: 1.12 ms, from 80.0 \u{b5}s to 1.20 ms. Itself: running 310 \u{b5}s"),
        ("ArrowDown", "db; query: 40.0"),
        ("End", "</script><script>alert(1)</script>: 900"),
        ("ArrowDown", "</script>"),
        ("Home", "checkout: 2.00 ms"),
    ] {
        browser.press(key);
        let words = browser.eval(told);
        assert!(words.as_str().unwrap().starts_with(begin), "{key}: {words}");
    }
    browser.eval("document.querySelector('.trace-card details summary').click()");
    browser.eval("new Promise((done) => setTimeout(done, 50))");
    let cells = "document.querySelectorAll('.trace-card details tbody tr')[1].textContent";
    assert_eq!(
        browser.eval(cells),
        "stocksrc/shop.rs:1280.0 \u{b5}s1.12 ms310 \u{b5}s60.0 \u{b5}s\u{2013}\u{2013}750 \u{b5}s\u{2013}"
    );
    let lost = browser.eval("document.querySelector('.trace-card:nth-child(3)').textContent");
    assert!(lost.as_str().unwrap().contains("12 short intervals are joined"), "{lost}");
    assert!(lost.as_str().unwrap().contains("3 more spans are told"), "{lost}");
    let (_, errors) = browser.requests_and_errors();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn requests_fit_a_phone_and_the_tabs_go_round() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), with_examples(folder.path()).to_str().unwrap());
    for look in [Look::Phone, Look::Dark] {
        browser.open(&page, "#request=GET+%2Fcart+src%2Fshop.rs%3A80", look);
        assert_eq!(browser.eval("document.querySelectorAll('.trace-card').length"), 3);
        assert_eq!(browser.eval("document.body.scrollWidth <= innerWidth"), true);
        browser.eval("document.getElementById('to-requests').focus()");
        browser.press("ArrowRight");
        assert_eq!(browser.eval("document.getElementById('tab-answer').hidden"), false);
        browser.press("ArrowLeft");
        assert_eq!(browser.eval("document.getElementById('tab-requests').hidden"), false);
        let (requests, errors) = browser.requests_and_errors();
        assert!(errors.is_empty() && requests.len() == 1, "{errors:?} {requests:?}");
    }
}

/// The frame that has the focus, or that the page tells of.
const TOLD: &str = "document.querySelector('#flame-frame .name').textContent";

#[test]
fn flame_graph_is_zoomed_by_click_and_from_a_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), WALL);
    browser.open(&page, "", Look::Desktop);
    assert_eq!(browser.eval("document.getElementById('tab-flame').hidden"), true);
    browser.eval("document.getElementById('to-flame').click()");
    assert_eq!(browser.eval("document.getElementById('tab-answer').hidden"), true);
    let widths = "[...document.querySelectorAll('.frame')].map((box) => Math.round(box.getBoundingClientRect().width))";
    let all = browser.eval(widths);
    assert!(all.as_array().unwrap().len() >= 13, "{all}");
    // The first has the most time, and the bands of a box fill it.
    let bands = "(() => { const box = document.querySelector('.frame'); const width = (node) => node.getBoundingClientRect().width; \
                 return Math.abs([...box.querySelectorAll('[class^=state]')].reduce((sum, band) => sum + width(band), 0) / width(box) - 1) < 0.001 })()";
    assert_eq!(browser.eval(bands), true);
    assert_eq!(browser.eval(TOLD), "all");
    browser.eval("document.querySelector('.frame').focus()");
    for (key, told) in [
        ("ArrowDown", "checkout"),
        ("ArrowRight", "GET /cart"),
        ("ArrowUp", "all"),
        ("ArrowDown", "checkout"),
        ("ArrowDown", "stock"),
        ("Enter", "stock"),
    ] {
        browser.press(key);
        assert_eq!(browser.eval(TOLD), told, "{key}");
    }
    let stock = "document.querySelector('.frame[aria-current=true]').getBoundingClientRect().width / document.getElementById('flame').clientWidth";
    assert_eq!(browser.eval(stock), 1.0);
    assert_eq!(
        browser.eval("decodeURIComponent(location.hash)"),
        "#stack=span+checkout+>+span+stock"
    );
    let words = browser.eval("document.getElementById('flame-frame').textContent");
    assert!(words.as_str().unwrap().contains("Woken by stock keeper 60.0 ms"), "{words}");
    browser.press("Escape");
    assert_eq!(browser.eval(TOLD), "checkout");
    browser.eval(
        "document.querySelector('[data-frame=\"7\"]')?.dispatchEvent(new MouseEvent('click'))",
    );
    browser.eval("document.getElementById('flame-out').click()");
    assert_eq!(browser.eval(TOLD), "all");
    let (_, errors) = browser.requests_and_errors();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn flame_graph_is_searched_and_is_a_table_too() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), WALL);
    for look in [Look::Phone, Look::Dark] {
        browser.open(&page, "#stack=&frames=db", look);
        assert_eq!(browser.eval("document.querySelectorAll('.frame.found').length"), 2);
        let found = browser.eval("document.getElementById('flame-found').textContent");
        assert_eq!(found, "2 stacks have it, with 14 % of the time");
        assert_eq!(browser.eval("document.body.scrollWidth <= innerWidth"), true);
        let rows = "[...document.querySelectorAll('#flame-table tbody tr')].map((row) => row.cells[0].textContent)";
        let rows = browser.eval(rows);
        assert_eq!(rows.as_array().unwrap().len(), 14, "{rows}");
        assert_eq!(
            (&rows[0], &rows[1], &rows[2]),
            (&"all".into(), &"checkout".into(), &"stock".into())
        );
        let (requests, errors) = browser.requests_and_errors();
        assert!(errors.is_empty() && requests.len() == 1, "{errors:?} {requests:?}");
    }
}

#[test]
fn ranking_leads_to_the_flame_graph_and_back() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page_without = page(folder.path(), PROFILE);
    browser.open(&page_without, "#stack=", Look::Desktop);
    assert_eq!(browser.eval("document.querySelector('.tabs, .to-flame')"), serde_json::Value::Null);
    let page = page(folder.path(), WALL);
    browser.open(&page, "", Look::Desktop);
    browser.eval("document.querySelector('[data-row=\"0\"] .to-flame').click()");
    assert_eq!(browser.eval(TOLD), "stock");
    browser.eval("new Promise((done) => { addEventListener('popstate', () => setTimeout(done)); history.back() })");
    assert_eq!(browser.eval("document.getElementById('tab-flame').hidden"), true);
    assert_eq!(effects(&browser.dom()).len(), 4);
}

#[test]
fn polls_long_polls_and_waits_for_others_are_sections() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page_of_wall = page(folder.path(), WALL);
    let text = |browser: &mut Browser, of: &str| {
        let text = browser.eval(&format!("document.querySelector('{of}').textContent"));
        text.as_str().unwrap().to_owned()
    };
    for look in [Look::Desktop, Look::Phone, Look::Dark] {
        browser.open(&page_of_wall, "", look);
        let long = text(&mut browser, "section[aria-labelledby=long-polls]");
        assert!(long.contains("Polls of 10.0 ms and more"), "{long}");
        let place = "audit blocked its worker for 80.0 ms at src/shop.rs:44 in \
                     shop::audit::</script>write (std::thread::functions::sleep), 12 times in 8.00 s";
        assert!(long.contains(place), "{long}");
        assert!(long.contains("task:audit, 75 % faster: throughput "), "{long}");
        assert!(long.contains("2 long polls of tasks that had handed their worker over"), "{long}");
        let rows = "[...document.querySelectorAll('section[aria-labelledby=polls] tbody tr')].map((row) => [0, 1, 2, 3, 4].map((i) => row.cells[i].textContent))";
        let rows = browser.eval(rows);
        assert_eq!(rows[0][0], "auditsrc/shop.rs:40", "{rows}");
        let tested = text(&mut browser, "section[aria-labelledby=polls] tbody tr");
        assert!(tested.contains("task:audit, 75 % faster: throughput +0.0 %"), "{tested}");
        assert_eq!((&rows[0][1], &rows[0][4]), (&"21".into(), &"81.0 ms".into()));
        assert_eq!((&rows[1][2], &rows[1][3]), (&"40.0 \u{b5}s".into(), &"300 \u{b5}s".into()));
        let edges = "[...document.querySelectorAll('.edge-table tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))";
        let edges = browser.eval(edges);
        assert!(edges.as_array().unwrap().len() >= 5, "{edges}");
        let drawn = "document.querySelectorAll('.edges .wait').length";
        assert_eq!(browser.eval(drawn), edges.as_array().unwrap().len());
        let keeper = "[...document.querySelectorAll('.edges .wait title')].map((it) => it.textContent).find((it) => it.startsWith('stock waits for stock keeper'))";
        assert_eq!(browser.eval(keeper), edge_of_stock());
        assert_eq!(browser.eval("document.body.scrollWidth <= innerWidth"), true);
        let (_, errors) = browser.requests_and_errors();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let without = page(folder.path(), PROFILE);
    browser.open(&without, "", Look::Desktop);
    let sections = "document.querySelector('#polls, #long-polls, #edges')";
    assert_eq!(browser.eval(sections), serde_json::Value::Null);
}

/// The wait of the fixture that is the longest of a span for a task.
fn edge_of_stock() -> &'static str {
    "stock waits for stock keeper: 60.0 ms, 14 % of wall time"
}
