//! One HTML page that needs nothing else: no script, no font, no picture from elsewhere.

use super::chart::{Chart, style};

/// A page that is being written.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// An empty page with a heading.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            body: format!("<h1>{}</h1>", escape(title)),
        }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.body += &format!("<h2>{}</h2>", escape(text));
        self
    }

    /// A paragraph; the text is escaped.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.body += &format!("<p>{}</p>", escape(text));
        self
    }

    /// A paragraph in small letters.
    pub fn note(&mut self, text: &str) -> &mut Self {
        self.body += &format!("<p class=\"note\">{}</p>", escape(text));
        self
    }

    /// Markup as it is.
    pub fn raw(&mut self, markup: &str) -> &mut Self {
        self.body += markup;
        self
    }

    /// A chart in its frame.
    pub fn chart(&mut self, chart: &Chart) -> &mut Self {
        self.body += &format!("<figure>{}</figure>", chart.svg());
        self
    }

    /// Small charts beside each other, as many as there is room for.
    pub fn charts(&mut self, charts: &[Chart]) -> &mut Self {
        let figure = |chart: &Chart| format!("<figure>{}</figure>", chart.svg());
        let figures: String = charts.iter().map(figure).collect();
        self.body += &format!("<div class=\"side-by-side\">{figures}</div>");
        self
    }

    /// A table; cells that begin with `*` are stressed, with `!` as something bad.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) -> &mut Self {
        self.grouped_table(&[], head, rows)
    }

    /// A table of words: every column to the left.
    pub fn words(&mut self, head: &[&str], rows: &[Vec<String>]) -> &mut Self {
        self.body += "<div class=\"words\">";
        self.grouped_table(&[], head, rows);
        self.body += "</div>";
        self
    }

    /// A table whose columns have common headings: each with the number of columns below it.
    pub fn grouped_table(
        &mut self,
        groups: &[(&str, u32)],
        head: &[&str],
        rows: &[Vec<String>],
    ) -> &mut Self {
        let groups: String = groups
            .iter()
            .map(|(name, columns)| {
                format!(
                    "<th class=\"group\" colspan=\"{columns}\">{}</th>",
                    escape(name)
                )
            })
            .collect();
        let head: String = head
            .iter()
            .map(|cell| format!("<th>{}</th>", escape(cell)))
            .collect();
        let row = |row: &Vec<String>| {
            format!(
                "<tr>{}</tr>",
                row.iter().map(|text| cell(text)).collect::<String>()
            )
        };
        let rows: String = rows.iter().map(row).collect();
        self.body += &format!(
            "<div class=\"wide\"><table><thead><tr>{groups}</tr><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        );
        self
    }

    /// The finished page.
    #[must_use]
    pub fn html(&self) -> String {
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{}</title>\
             <style>{PAGE}{}</style></head><body><main>{}</main></body></html>\n",
            escape(&self.title),
            style(),
            self.body
        )
    }
}

fn cell(text: &str) -> String {
    if let Some(stressed) = text.strip_prefix('*') {
        format!("<td><strong>{}</strong></td>", escape(stressed))
    } else if let Some(bad) = text.strip_prefix('!') {
        format!("<td><strong class=\"bad\">{}</strong></td>", escape(bad))
    } else {
        format!("<td>{}</td>", escape(text))
    }
}

/// Text as it may stand in markup.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const PAGE: &str = "\
:root{--ink:#1d2330;--soft:#5d6574;--ground:#f6f7f9;--card:#fff;--rule:#e1e5eb;--accent:#0b7a75;--bad:#c8553d}\
@media(prefers-color-scheme:dark){:root{--ink:#e8ecf2;--soft:#98a2b3;--ground:#0c0f14;--card:#12161d;--rule:#262d38;--accent:#3fd0c9;--bad:#ff8a70}}\
*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif}\
main{max-width:920px;margin:0 auto;padding:40px 20px 64px}h1{font-size:28px;line-height:1.2;margin:0 0 8px}\
h2{font-size:20px;margin:40px 0 8px}h3{font-size:15.5px;margin:22px 0 0}h3+p{margin-top:3px}p{margin:8px 0 14px;max-width:80ch}.note{color:var(--soft);font-size:13.5px}\
figure{margin:14px 0;background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:10px 8px 4px;overflow-x:auto}\
.chart{display:block;width:100%;height:auto;min-width:600px}.wide{overflow-x:auto}\
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums;background:var(--card);border:1px solid var(--rule);border-radius:10px;overflow:hidden}\
th,td{padding:7px 10px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}th{font-weight:600;color:var(--soft)}\
th.group{text-align:center;border-bottom:0;padding-bottom:0}th:first-child,td:first-child{text-align:left}.words th,.words td{text-align:left}tbody tr:last-child td{border-bottom:0}strong{color:var(--accent)}strong.bad{color:var(--bad)}\
.side-by-side{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:10px}.side-by-side figure{margin:0}.side-by-side .chart{min-width:0}\
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px;margin:18px 0}\
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px}\
.card b{display:block;font-size:13px;font-weight:600;color:var(--soft)}\
.card .big{font-size:25px;white-space:nowrap;font-weight:650;line-height:1.25}.card .with{color:var(--accent)}.card .without{color:var(--bad)}\
.card small{color:var(--soft)}";
