//! The page at `/` in a real browser: it updates by itself, on narrow and wide screens, and in light and dark.

use std::fs;

use serde_json::json;

use crate::browser::Browser;
use crate::prometheus::{PrometheusScript, ScriptedPrometheus};
use crate::proxy::TestProxy;
use crate::recordings::{CALL, recording};
use crate::stage::{ServingStage, policy, until};
use crate::traffic::{SHOP, TIGHT, many, stage_with};

/// Text that a proxy may send. It must not become markup of the page.
const MARKUP: &str = "<img src=x onerror=\"document.title='broken in'\">";

/// The text of a part of the page, or an empty text if the part is not visible.
fn text_of(part: &str) -> String {
    format!(
        "(document.querySelector('{part}')?.checkVisibility() ? document.querySelector('{part}').innerText : '')"
    )
}

fn has(part: &str, text: &str) -> String {
    format!("{}.includes({})", text_of(part), json!(text))
}

async fn opened(stage: &ServingStage) -> Browser {
    let mut browser = Browser::start().await;
    browser
        .open(&format!("http://{}/", stage.settings.http))
        .await;
    browser.shows(&has("#link", "live")).await;
    browser
}

/// Checks that the page fits this width, and that its texts are readable.
async fn fits(browser: &mut Browser, width: u32, scheme: &str) {
    browser.look(width, scheme).await;
    let overflow = "document.documentElement.scrollWidth - window.innerWidth";
    let over = browser.value(overflow).await.as_f64().unwrap();
    assert!(over <= 0.0, "{over} pixels too wide at {width}");
    let least = browser.value("leastContrast()").await;
    // The level AA of WCAG 2.
    assert!(least["ratio"].as_f64().unwrap() >= 4.5, "{scheme}: {least}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: make test-page"]
async fn the_page_follows_policies_and_rejections_without_a_reload() {
    let stage = ServingStage::start().await;
    let mut browser = opened(&stage).await;
    browser.value("window.isTheSamePage = true").await;
    browser
        .shows(&has("#proxies", "No proxy is connected"))
        .await;

    stage.write("checkout.yaml", &policy("checkout", "edge-*", 100));
    browser.shows(&has("#policies", "checkout")).await;
    browser.shows(&has("#policies", "enforce")).await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge-7", "").await;
    proxy.pushed_and_accepted().await;
    browser.shows(&has("#proxies", "edge-7")).await;
    browser.shows(&has("#proxies .state", "current")).await;
    let before = browser.value(&text_of("#policies code")).await;

    stage.write("checkout.yaml", &policy("checkout", "edge-*", 200));
    let push = proxy.pushed().await;
    browser.shows(&has("#proxies .state", "behind")).await;
    assert_ne!(browser.value(&text_of("#policies code")).await, before);
    let message = format!("out of memory {MARKUP}");
    proxy
        .requests
        .send(TestProxy::rejection(&push, &message))
        .await
        .unwrap();
    browser.shows(&has("#proxies .state", "rejected")).await;
    browser.shows(&has("#proxies", &message)).await;
    browser.shows(&has("#count-rejected", "1")).await;

    stage.write("checkout.yaml", "apiVersion: [");
    browser.shows(&has("#problems", "malformed YAML")).await;
    fs::remove_file(stage.file("checkout.yaml")).unwrap();
    browser
        .shows("document.querySelector('#problems').hidden")
        .await;
    browser.shows(&has("#policies", "No policies yet")).await;

    drop(proxy);
    browser
        .shows(&has("#proxies", "No proxy is connected"))
        .await;
    assert_eq!(browser.value("window.isTheSamePage").await, true);
    assert_eq!(browser.value("document.title").await, "Tidegate");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: make test-page"]
async fn the_page_shows_an_outage_and_recovers_by_itself() {
    let mut stage = ServingStage::start().await;
    let mut browser = opened(&stage).await;

    stage.stop().await;
    browser.shows(&has("#link", "does not answer")).await;
    stage.write("late.yaml", &policy("late", "*", 100));
    stage.resume().await;

    browser.shows(&has("#link", "live")).await;
    browser.shows(&has("#policies", "late")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: make test-page"]
async fn the_page_fits_any_width_and_can_be_read_in_light_and_dark() {
    let stage = ServingStage::start().await;
    stage.write(
        "a.yaml",
        &policy("a-policy-with-a-name-that-is-rather-long", "*", 100),
    );
    stage.write("b.yaml", "apiVersion: [");
    // A rejection refers to one version. So the policy must be in force first.
    until("both files were read", async || {
        let found = stage.json("/v1/policies").await;
        found["policies"][0]["name"].is_string() && found["problems"][0]["found"].is_string()
    })
    .await;
    let id = "sidecar~10.1.2.3~checkout-7f9c8d6b5-x2x4z.shop~shop.svc.cluster.local";
    let mut proxy = TestProxy::connect(stage.settings.xds, id, "").await;
    let push = proxy.pushed().await;
    let rejection = TestProxy::rejection(&push, &"cannot_be_used_".repeat(20));
    proxy.requests.send(rejection).await.unwrap();
    let mut browser = opened(&stage).await;
    browser.shows(&has("#proxies .state", "rejected")).await;
    browser.value(CONTRAST).await;

    let mut grounds = Vec::new();
    for (width, scheme) in [
        (360, "light"),
        (360, "dark"),
        (768, "light"),
        (1280, "dark"),
        (1280, "light"),
    ] {
        fits(&mut browser, width, scheme).await;
        grounds.push(
            browser
                .value("luminance(getComputedStyle(document.body).backgroundColor)")
                .await,
        );
    }
    let [light, dark, ..] = grounds.as_slice() else {
        panic!("{grounds:?}");
    };
    assert!(light.as_f64().unwrap() > 0.8, "{light}");
    assert!(dark.as_f64().unwrap() < 0.1, "{dark}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: make test-page"]
async fn the_page_draws_the_graph_and_a_choice_shows_policy_and_recommendation() {
    let prometheus = ScriptedPrometheus::start(PrometheusScript::Recording(SHOP.to_owned()));
    let stage = stage_with(&prometheus).await;
    let mut browser = opened(&stage).await;
    browser.shows("document.querySelectorAll('#picture .service').length === 7 && document.querySelectorAll('#picture .call path').length === 6").await;
    browser
        .shows("document.querySelector('#graph').innerText.includes('7 services, 6 calls')")
        .await;
    let cart = "[...document.querySelectorAll('#picture .service')].find(made => made.textContent.includes('cart'))";
    browser
        .value(&format!(
            "{cart}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
        ))
        .await;
    browser.shows(&has("#service", "within 210ms")).await;
    browser.shows(&has("#service", "none")).await;

    stage.write("tight.yaml", TIGHT);
    browser
        .shows(&has(
            "#service",
            "tight, top level: quantile 0.99 within 1ms",
        ))
        .await;
    browser
        .shows(&has(
            "#service",
            "half of the requests take longer than 18.0 ms",
        ))
        .await;
    browser
        .shows(&has("#unreachable", "tight, top level"))
        .await;
    let stock = cart.replace("cart", "stock");
    browser
        .value(&format!(
            "{stock}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true}}))"
        ))
        .await;
    browser.shows(&has("#service", "within 150ms")).await;
    browser
        .value("document.querySelector('#calls').open = true")
        .await;
    browser.shows(&has("#calls", "shop/cart-v1")).await;

    browser.value(CONTRAST).await;
    for (width, scheme) in [(360, "light"), (1280, "dark"), (1280, "light")] {
        fits(&mut browser, width, scheme).await;
    }
    prometheus.play(PrometheusScript::Page("<html>log in</html>"));
    browser.shows(&has("#graph-failure", "log in")).await;
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: make test-page"]
async fn names_are_no_markup_and_only_the_busiest_services_are_drawn() {
    let text = recording(&[CALL], &format!("{MARKUP}\u{202e}"));
    let prometheus = ScriptedPrometheus::start(PrometheusScript::Recording(text));
    let stage = stage_with(&prometheus).await;
    let mut browser = opened(&stage).await;
    browser
        .shows("document.querySelectorAll('#picture .service').length === 2")
        .await;
    let title = "document.querySelector('#picture title').textContent";
    let title = browser.value(title).await;
    let title = title.as_str().unwrap();
    assert!(
        title.contains(&format!("{MARKUP}\\u{{202e}}web")),
        "{title}"
    );

    prometheus.play(PrometheusScript::Recording(many(300)));
    browser
        .shows(&has("#graph-note", "the 60 busiest of 301 services"))
        .await;
    prometheus.play(PrometheusScript::Recording(many(0)));
    browser
        .shows(&has("#graph-note", "0 services, 0 calls"))
        .await;
    assert_eq!(browser.value("document.title").await, "Tidegate");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Relative luminance and least contrast of WCAG 2, for every element of the page that contains text.
const CONTRAST: &str = r"
  window.luminance = color => {
    const [r, g, b] = color.match(/[\d.]+/g).map(Number).map(value => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  window.leastContrast = () => {
    let least = { ratio: Infinity };
    for (const element of document.querySelectorAll('body *')) {
      const holdsText = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
      if (!holdsText || !element.checkVisibility()) continue;
      let ground = element;
      while (ground && /, 0\)$/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
      const behind = luminance(getComputedStyle(ground ?? document.body).backgroundColor);
      const ink = luminance(getComputedStyle(element).color);
      const ratio = (Math.max(ink, behind) + 0.05) / (Math.min(ink, behind) + 0.05);
      if (ratio < least.ratio) least = { ratio, text: element.textContent, color: getComputedStyle(element).color };
    }
    return least;
  };
  true";
