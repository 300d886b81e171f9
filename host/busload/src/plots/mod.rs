//! Plots of results: bandwidth over strides, offsets, sizes and widths, the ladders of the families, a roofline, predictions beside
//! measurements, and samples. Each is data first ([`Plot`]), and then drawn: as SVG, as PNG, or on one page with all of them.

mod axis;
mod by_axis;
mod cases;
mod catalogue;
mod curves;
mod draw;
mod fleet;
mod ladder;
mod material;
mod name;
mod on;
mod page;
mod picture;
mod png;
mod predicted;
mod roofline;
mod samples;
mod size;
mod text;
mod width;

pub use catalogue::{Chapter, chapters, find, left_out};
pub use draw::svg;
pub use fleet::fleet_page;
pub use material::{Asked, Forecast, Material, MaterialError, Series, Subject};
pub use page::page;
pub use picture::{
    Axis, Curves, Group, Ink, Lane, Layer, Level, Mark, Marker, Name, Picture, Plot, Row, Rows, Scale, Shape, Stroke,
    Table, Unit,
};
pub use png::{PngError, png};
