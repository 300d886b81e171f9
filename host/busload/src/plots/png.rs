//! A plot as PNG: its SVG with the letters of a font that is built in, so that it is the same everywhere.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::Arc;

/// Pixels of the picture for each of the plot's.
const SCALE: f32 = 2.0;

/// An SVG that no picture can be made of.
#[derive(Debug, thiserror::Error)]
#[error("no PNG can be made of it: {0}")]
pub struct PngError(String);

/// The picture of an SVG, twice as large.
///
/// # Errors
/// If it is no SVG, or too large.
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    fonts.load_font_data(epaint_default_fonts::HACK_REGULAR.to_vec());
    fonts.set_sans_serif_family("Ubuntu");
    fonts.set_monospace_family("Hack");
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| PngError(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| PngError("it is too large".into()))?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or_else(|| PngError("it is too large".into()))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| PngError(error.to_string()))
}
