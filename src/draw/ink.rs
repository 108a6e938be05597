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

/// Lines on a filled area, so that areas of one colour are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hatch {
    /// No lines.
    Plain,
    /// Upwards to the right.
    Rising,
    /// Downwards to the right.
    Falling,
    /// Both of these.
    Crossed,
    /// From left to right.
    Level,
    /// From top to bottom.
    Upright,
}

/// How an area is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Its colour.
    pub ink: Ink,
    /// The lines on it, in a darker shade of the colour.
    pub hatch: Hatch,
}

impl From<Ink> for Fill {
    fn from(ink: Ink) -> Self {
        Self { ink, hatch: Hatch::Plain }
    }
}

impl Fill {
    /// The same, mixed with white as [`Ink::tint`] does.
    pub fn tint(self, share: f32) -> Self {
        Self { ink: self.ink.tint(share), ..self }
    }

    /// The colour of its lines.
    pub fn lines(self) -> Ink {
        Ink { rgb: self.ink.rgb.map(|c| (f32::from(c) * 0.45) as u8), ..self.ink }
    }
}

/// The fill of thing `k`: six colours; the next six things have the same colours with lines, in
/// five ways. So 36 things are told apart with any colour vision; the next 36 are the same in paler
/// colours, and the 73rd looks as the first.
pub fn many(k: usize) -> Fill {
    const COLOURS: usize = PALETTE.len() - 1;
    const HATCHES: [Hatch; 6] =
        [Hatch::Plain, Hatch::Rising, Hatch::Level, Hatch::Crossed, Hatch::Upright, Hatch::Falling];
    let pale = (k / (COLOURS * HATCHES.len())) % 2 == 1;
    Fill {
        ink: PALETTE[k % COLOURS].tint(if pale { 0.4 } else { 0.75 }),
        hatch: HATCHES[k / COLOURS % HATCHES.len()],
    }
}
