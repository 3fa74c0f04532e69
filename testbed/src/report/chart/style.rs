//! Colours and letters of charts, on light and on dark ground.

/// Classes for lines, each with its colour on light and on dark ground.
pub const COLOURS: [(&str, &str, &str); 8] = [
    ("c-tidegate", "#0b7a75", "#3fd0c9"),
    ("c-none", "#c8553d", "#ff8a70"),
    ("c-offered", "#8a8f98", "#8a8f98"),
    ("c-oracle", "#5b6270", "#aab2c0"),
    ("c-shed", "#c99700", "#f2c94c"),
    ("c-violet", "#6c4bb6", "#b39cff"),
    ("c-blue", "#2c6fbb", "#7db7ff"),
    ("c-pink", "#b0367d", "#ff86c5"),
];

/// The style of all charts.
#[must_use]
pub fn style() -> String {
    let colours = |dark: bool| -> String {
        let colour = |(class, on_light, on_dark): &(&str, &str, &str)| {
            let value = if dark { on_dark } else { on_light };
            format!(
                ".chart .{class}{{stroke:{value}}}.chart .area.{class}{{fill:{value};stroke:none}}"
            )
        };
        COLOURS.iter().map(colour).collect()
    };
    format!(
        "{LIGHT}{}@media(prefers-color-scheme:dark){{{DARK}{}}}",
        colours(false),
        colours(true)
    )
}

const LIGHT: &str = "\
.chart{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:11px}\
.chart text{fill:#4a505c}.chart .title{font-size:14px;font-weight:600;fill:#1d2330}\
.chart .unit{font-weight:400;font-size:12px;fill:#6b7280}.chart .legend{font-size:11.5px}\
.chart .grid{stroke:#e4e7ec;stroke-width:1}.chart .end{text-anchor:end}.chart .mid,.chart .phase{text-anchor:middle}\
.chart .phase{font-size:10.5px;fill:#6b7280}\
.chart .band{fill:none}.chart .trouble{fill:#c8553d;fill-opacity:.07}\
.chart .level{stroke:#6b7280;stroke-width:1;stroke-dasharray:2 3}\
.chart .level-name{text-anchor:end;font-size:10.5px;fill:#6b7280}\
.chart .line,.chart .key{fill:none;stroke-width:2;stroke-linejoin:round}\
.chart .dashed{fill:none;stroke-width:1.4;stroke-dasharray:4 3}.chart .area{fill-opacity:.12}\
.chart .ground{fill:#fff}";

const DARK: &str = "\
.chart text{fill:#b6bdc9}.chart .title{fill:#eef1f6}.chart .unit,.chart .phase,.chart .level-name{fill:#8f98a8}\
.chart .grid{stroke:#2a313d}.chart .trouble{fill:#ff8a70;fill-opacity:.09}.chart .ground{fill:#12161d}";
