//! Colors on light and on dark ground.
//!
//! The drawing library writes fixed colors into the SVG: those for a light ground. Where the reader prefers dark, a style
//! sheet replaces each of them: a rule of a style sheet overrides a presentation attribute, and an attribute selector finds
//! all elements of one color. Without the style sheet the picture is right on a light ground.

use std::fmt::Write as _;

/// A color of lines and areas, with a value for light and one for dark ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Color {
    /// Tidegate, in all charts.
    Teal,
    /// No protection, in all charts.
    Red,
    /// A reference: the load, an objective.
    Grey,
    /// The oracle.
    Slate,
    /// For any use, as all that follow.
    Gold,
    /// See [`Self::Gold`].
    Violet,
    /// See [`Self::Gold`].
    Blue,
    /// See [`Self::Gold`].
    Pink,
    /// See [`Self::Gold`].
    Green,
    /// See [`Self::Gold`].
    Brown,
    /// See [`Self::Gold`].
    Orange,
    /// See [`Self::Gold`].
    Cyan,
    /// See [`Self::Gold`].
    Olive,
    /// See [`Self::Gold`].
    Navy,
    /// See [`Self::Gold`].
    Plum,
    /// Titles.
    Ink,
    /// Names and numbers.
    Text,
    /// Less important text.
    Soft,
    /// Lines across the plot.
    Grid,
    /// The ground of a picture in a file of its own.
    Ground,
}

/// Each color as red, green and blue, for light and for dark ground.
const VALUES: [(Color, u32, u32); 20] = [
    (Color::Teal, 0x0b_7a75, 0x3f_d0c9),
    (Color::Red, 0xc8_553d, 0xff_8a70),
    (Color::Grey, 0x8a_8f98, 0x8a_8f98),
    (Color::Slate, 0x5b_6270, 0xaa_b2c0),
    (Color::Gold, 0xc9_9700, 0xf2_c94c),
    (Color::Violet, 0x6c_4bb6, 0xb3_9cff),
    (Color::Blue, 0x2c_6fbb, 0x7d_b7ff),
    (Color::Pink, 0xb0_367d, 0xff_86c5),
    (Color::Green, 0x4d_8b31, 0x9a_d17b),
    (Color::Brown, 0x8a_5a2b, 0xd9_a878),
    (Color::Orange, 0xe0_7b00, 0xff_b45c),
    (Color::Cyan, 0x00_96b0, 0x5a_d7ee),
    (Color::Olive, 0x7d_7f1f, 0xc9_cc6a),
    (Color::Navy, 0x2f_3c7e, 0x97_a6f5),
    (Color::Plum, 0x7a_2340, 0xe5_8fa9),
    (Color::Ink, 0x1d_2330, 0xee_f1f6),
    (Color::Text, 0x4a_505c, 0xb6_bdc9),
    (Color::Soft, 0x6b_7280, 0x8f_98a8),
    (Color::Grid, 0xe4_e7ec, 0x2a_313d),
    (Color::Ground, 0xff_ffff, 0x12_161d),
];

impl Color {
    /// Colors for contenders without one of their own, those first that are easiest to distinguish.
    pub const FREE: [Self; 11] = [
        Self::Gold,
        Self::Violet,
        Self::Blue,
        Self::Pink,
        Self::Green,
        Self::Orange,
        Self::Brown,
        Self::Cyan,
        Self::Olive,
        Self::Navy,
        Self::Plum,
    ];

    /// Red, green and blue on light ground.
    #[must_use]
    pub fn on_light(self) -> [u8; 3] {
        let found = VALUES.iter().find(|(color, ..)| *color == self);
        let [_, red, green, blue] = found.map_or(0, |(_, light, _)| *light).to_be_bytes();
        [red, green, blue]
    }
}

/// The rules that replace the colors of every `.chart` on dark ground.
#[must_use]
pub(crate) fn dark_rules() -> String {
    let mut rules = String::new();
    for (_, light, dark) in VALUES {
        // Writing to a string does not fail. The drawing library writes capital letters.
        let _ = write!(
            rules,
            ".chart [stroke=\"#{light:06X}\"]{{stroke:#{dark:06x}}}.chart [fill=\"#{light:06X}\"]{{fill:#{dark:06x}}}"
        );
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_color_has_a_light_value_of_its_own() {
        let mut lights: Vec<u32> = VALUES.iter().map(|(_, light, _)| *light).collect();
        lights.sort_unstable();
        lights.dedup();
        assert_eq!(lights.len(), VALUES.len());
    }

    #[test]
    fn bytes_are_red_green_blue() {
        assert_eq!(Color::Teal.on_light(), [0x0b, 0x7a, 0x75]);
    }
}
