//! Colours.

/// A colour and how much of what is below it covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    /// Red, green, blue.
    pub rgb: [u8; 3],
    /// From 0, nothing, to 1, everything.
    pub cover: f32,
}

impl Ink {
    /// Black.
    pub const BLACK: Self = Self::new(0, 0, 0);
    /// White.
    pub const WHITE: Self = Self::new(255, 255, 255);

    /// A colour that covers what is below it.
    pub const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self { rgb: [red, green, blue], cover: 1.0 }
    }

    /// The same colour, mixed with white: `share` of 0 is white, of 1 the colour itself.
    pub fn tint(self, share: f32) -> Self {
        let mixed = |c: u8| (255.0 - (255.0 - f32::from(c)) * share).round() as u8;
        Self { rgb: self.rgb.map(mixed), ..self }
    }

    /// Black or white, whichever is easier to read on this colour.
    pub fn against(self) -> Self {
        let [r, g, b] = self.rgb.map(f32::from);
        if 0.299 * r + 0.587 * g + 0.114 * b > 130.0 { Self::BLACK } else { Self::WHITE }
    }
}

/// Okabe and Ito's colours, which people with any colour vision tell apart; the brightest last.
const PALETTE: [Ink; 7] = [
    Ink::new(0, 114, 178),
    Ink::new(213, 94, 0),
    Ink::new(0, 158, 115),
    Ink::new(204, 121, 167),
    Ink::new(230, 159, 0),
    Ink::new(86, 180, 233),
    Ink::new(0, 0, 0),
];

/// The colour of line `k`.
pub fn colour(k: usize) -> Ink {
    PALETTE[k % PALETTE.len()]
}

/// The colour of thing `k` of `all`: of few the palette's, of many by the golden angle, which keeps neighbouring numbers apart.
pub fn many(k: usize, all: usize) -> Ink {
    const FEW: usize = PALETTE.len() - 1;
    if all <= FEW {
        return PALETTE[k % FEW].tint(0.75);
    }
    let lightness = if k.is_multiple_of(2) { 0.62 } else { 0.76 };
    of_hue((k as f64 * 0.381_966).fract() * 6.0, 0.55, lightness)
}

/// A colour by its hue (0 to 6), saturation and lightness (0 to 1).
fn of_hue(hue: f64, saturation: f64, lightness: f64) -> Ink {
    let reach = saturation * lightness.min(1.0 - lightness);
    let part = |n: f64| {
        let k = (n + hue * 2.0) % 12.0;
        ((lightness - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)) * 255.0).round() as u8
    };
    Ink::new(part(0.0), part(8.0), part(4.0))
}
