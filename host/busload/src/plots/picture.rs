//! What a plot shows, as data: nothing here knows how it is drawn.

/// A plot: what is drawn, and the same figures as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it is asked for by.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What is seen in it, in a sentence or two.
    pub says: String,
    /// What is drawn.
    pub picture: Picture,
    /// The figures that are drawn.
    pub table: Table,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Curves and points over two axes.
    Curves(Curves),
    /// Rows of bars and marks over one axis.
    Rows(Rows),
}

/// Figures as a table. The first column names the row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What the columns hold.
    pub columns: Vec<String>,
    /// Their texts, row by row.
    pub rows: Vec<Vec<String>>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// How it is divided.
    pub scale: Scale,
    /// Where it is marked; where its scale says, if empty.
    pub marks: Vec<f64>,
    /// How a value is written.
    pub unit: Unit,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From zero on.
    Linear,
    /// From one figure to another.
    Between(f64, f64),
    /// By powers. Zero stands as far before one as two stands after it.
    Logarithmic,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As a number.
    Number,
    /// As a number of bytes.
    Bytes,
    /// As a share in percent.
    Percent,
}

/// Curves and points over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// Along.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is drawn, the first behind the others.
    pub layers: Vec<Layer>,
    /// Points that are named where there is room, the most important first.
    pub names: Vec<Name>,
    /// What colours and strokes mean, where they do not go by the label.
    pub keys: Vec<(Stroke, Ink, String)>,
}

/// The name of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The point.
    pub at: [f64; 2],
    /// What it is called.
    pub text: String,
}

/// A curve, or points.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// What it is of. Layers of one label have one entry in the key.
    pub label: String,
    /// Its colour.
    pub ink: Ink,
    /// How it is drawn.
    pub stroke: Stroke,
    /// The points, from left to right.
    pub points: Vec<[f64; 2]>,
}

/// A colour by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// One of those that tell curves apart.
    Series(usize),
    /// That of what stands behind.
    Quiet,
}

/// How a layer is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// A line through its points, each with a mark.
    Line(Marker),
    /// A line alone.
    Plain,
    /// A dashed line.
    Dashed,
    /// A dotted line.
    Dotted,
    /// The points alone.
    Points(Marker),
}

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A full circle.
    Dot,
    /// A full square.
    Square,
    /// A full triangle.
    Triangle,
    /// A full square on its corner.
    Diamond,
    /// A full triangle on its corner.
    Wedge,
    /// Two bars across one another.
    Plus,
    /// The same, turned.
    Cross,
    /// A star of five points.
    Star,
    /// A circle that is empty.
    Ring,
}

impl Marker {
    /// The full ones in turn.
    pub(crate) fn of(number: usize) -> Self {
        const FULL: [Marker; 8] = [
            Marker::Dot,
            Marker::Square,
            Marker::Triangle,
            Marker::Diamond,
            Marker::Wedge,
            Marker::Plus,
            Marker::Cross,
            Marker::Star,
        ];
        FULL[number % FULL.len()]
    }
}

/// Rows of bars and marks over one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// The axis.
    pub x: Axis,
    /// What the marks mean.
    pub keys: Vec<(Shape, Ink, String)>,
    /// The rows, by group.
    pub groups: Vec<Group>,
}

/// A line across the rows of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// What it is.
    pub label: String,
    /// Its colour.
    pub ink: Ink,
    /// Where it stands.
    pub value: f64,
}

/// Rows under one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The heading; none if there is one group alone.
    pub title: Option<String>,
    /// Lines across its rows.
    pub levels: Vec<Level>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is of.
    pub label: String,
    /// Its lanes, one below the other.
    pub lanes: Vec<Lane>,
}

/// A line of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// What is drawn, the first behind the others.
    pub marks: Vec<Mark>,
    /// Its figure in words, at its end.
    pub note: String,
}

/// What is drawn in a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// How.
    pub shape: Shape,
    /// In which colour.
    pub ink: Ink,
    /// Where.
    pub values: Vec<f64>,
}

/// How a mark is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A bar from the beginning of the axis.
    Bar,
    /// A bar from its first value to its second.
    Band,
    /// An empty diamond at each value.
    Diamond,
    /// A short line across the lane.
    Tick,
    /// A thin line across the lane at each value: those that lie close together add up.
    Sample,
}
