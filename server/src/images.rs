//! Images for models: recognised by their bytes, made small enough to be sent.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageEncoder, ImageReader};
use sampi_protocol::data::Model;

/// What an image must keep within to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimit {
    /// Pixels at most, from left to right.
    pub width: u32,
    /// Pixels at most, from top to bottom.
    pub height: u32,
    /// Bytes at most, as base64.
    pub bytes: usize,
    /// The best quality at which it is written as JPEG, 1 to 100.
    pub jpeg_quality: u8,
}

impl Default for ImageLimit {
    fn default() -> Self {
        Self { width: 2000, height: 2000, bytes: 4 * 1024 * 1024 + 512 * 1024, jpeg_quality: 80 }
    }
}

impl ImageLimit {
    /// What the model's `inputLimits` say, and the usual limits for what they do not say.
    pub(crate) fn of(model: &Model) -> Self {
        let usual = Self::default();
        let given = model.extra.get("inputLimits").and_then(|limits| limits.pointer("/images/resize"));
        let field = |name: &str| given?.get(name)?.as_u64().filter(|value| *value > 0);
        let side = |name: &str| field(name).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        Self {
            width: side("maxWidth").unwrap_or(usual.width),
            height: side("maxHeight").unwrap_or(usual.height),
            bytes: field("maxBytes")
                .map_or(usual.bytes, |value| usize::try_from(value).unwrap_or(usize::MAX)),
            jpeg_quality: field("jpegQuality")
                .and_then(|value| u8::try_from(value.min(100)).ok())
                .unwrap_or(usual.jpeg_quality),
        }
    }

    /// How much smaller an image must be; 1 when it need not be.
    fn scale(self, width: u32, height: u32) -> f64 {
        let (across, down) =
            (f64::from(self.width) / f64::from(width), f64::from(self.height) / f64::from(height));
        across.min(down).min(1.0)
    }
}

/// Qualities of JPEG that are tried when the best one does not make an image small enough.
const JPEG_QUALITIES: [u8; 3] = [65, 50, 35];

/// The media type of bitmaps, which have to be converted.
const BITMAP: &str = "image/bmp";

/// How much smaller an image is made when no quality is small enough.
const SHRINK: f64 = 0.75;

/// An image that can be sent.
#[derive(Debug)]
pub(crate) struct SentImage {
    /// The bytes as base64.
    pub(crate) data: String,
    /// The media type.
    pub(crate) mime_type: &'static str,
    /// How it differs from the file.
    pub(crate) notes: Vec<String>,
}

/// The media type of an image that models take, by the first bytes of the file.
pub(crate) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let at = |start: usize, part: &[u8]| bytes.get(start..).is_some_and(|rest| rest.starts_with(part));
    if at(0, b"\x89PNG\r\n\x1a\n") && at(12, b"IHDR") {
        Some("image/png")
    } else if at(0, b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if at(0, b"GIF87a") || at(0, b"GIF89a") {
        Some("image/gif")
    } else if at(0, b"RIFF") && at(8, b"WEBP") {
        Some("image/webp")
    } else if at(0, b"BM")
        && at(6, &[0; 4])
        && bytes.get(14).is_some_and(|size| matches!(size, 12 | 40..=124))
    {
        Some(BITMAP)
    } else {
        None
    }
}

/// The image as it is; a bitmap, which models do not take, as PNG. `None` when that cannot be read.
pub(crate) fn as_is(bytes: &[u8], mime_type: &'static str) -> Option<SentImage> {
    if mime_type != BITMAP {
        return Some(SentImage { data: STANDARD.encode(bytes), mime_type, notes: Vec::new() });
    }
    let data = STANDARD.encode(png(&decode(bytes)?)?);
    Some(SentImage { data, mime_type: "image/png", notes: vec![converted(mime_type)] })
}

/// The image, made smaller when it is over the limits. `None` when it cannot be read or made small enough.
pub(crate) fn fit(bytes: &[u8], mime_type: &'static str, limit: ImageLimit) -> Option<SentImage> {
    let image = decode(bytes)?;
    let (width, height) = (image.width(), image.height());
    if width <= limit.width && height <= limit.height {
        let sent = as_is(bytes, mime_type)?;
        if sent.data.len() < limit.bytes {
            return Some(sent);
        }
    }
    let scale = limit.scale(width, height);
    let (mut new_width, mut new_height) = (scaled(width, scale), scaled(height, scale));
    loop {
        let resized = if (new_width, new_height) == (width, height) {
            image.clone()
        } else {
            image.resize_exact(new_width, new_height, FilterType::CatmullRom)
        };
        if let Some((data, sent_type)) = smallest(&resized, limit) {
            let resized = format!(
                "[Image: original {width}x{height}, displayed at {new_width}x{new_height}. Multiply coordinates \
                 by {:.2} to map to original image.]",
                f64::from(width) / f64::from(new_width)
            );
            let mut notes = vec![resized];
            if mime_type == BITMAP {
                notes.insert(0, converted(mime_type));
            }
            return Some(SentImage { data: STANDARD.encode(data), mime_type: sent_type, notes });
        }
        if (new_width, new_height) == (1, 1) {
            return None;
        }
        (new_width, new_height) = (scaled(new_width, SHRINK), scaled(new_height, SHRINK));
    }
}

/// Base64 of an image's beginning, which tells its sides in most cases.
const HEAD_CHARS: usize = 64 * 1024;

/// Width and height of an image in base64, where they can be told.
pub(crate) fn sides(data: &str) -> Option<(u32, u32)> {
    let of = |data: &str| {
        let bytes = STANDARD.decode(data).ok()?;
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?.into_dimensions().ok()
    };
    let data = data.trim();
    data.get(..HEAD_CHARS).and_then(of).or_else(|| of(data))
}

/// What stands in for an image that cannot be sent.
const OMITTED: &str = "[Image omitted: it is not a PNG, JPEG, GIF, WebP or BMP image that can be read.]";

/// Makes an image of the user's ready to be sent; the error is the text that stands in for it.
pub(crate) fn prepare(data: &str, resize: Resize) -> Result<SentImage, String> {
    let prepared = STANDARD.decode(data.trim()).ok().and_then(|bytes| {
        let mime_type = image_type(&bytes)?;
        match resize {
            Resize::ToFit(limit) => fit(&bytes, mime_type, limit),
            Resize::Never => as_is(&bytes, mime_type),
        }
    });
    prepared.ok_or_else(|| OMITTED.to_owned())
}

/// Whether images are made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resize {
    /// When they are over the limit.
    ToFit(ImageLimit),
    /// Never (`images.autoResize` is off).
    Never,
}

fn converted(mime_type: &str) -> String {
    format!("[Image converted from {mime_type} to image/png.]")
}

fn decode(bytes: &[u8]) -> Option<DynamicImage> {
    let mut decoder = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?.into_decoder().ok()?;
    let orientation = decoder.orientation().ok();
    let mut image = DynamicImage::from_decoder(decoder).ok()?;
    if let Some(orientation) = orientation {
        image.apply_orientation(orientation);
    }
    (image.width() > 0 && image.height() > 0).then_some(image)
}

/// PNG or JPEG, whichever is smaller, at the best quality that is within the limit.
fn smallest(image: &DynamicImage, limit: ImageLimit) -> Option<(Vec<u8>, &'static str)> {
    let fits = |data: &Vec<u8>| encoded_bytes(data.len()) < limit.bytes;
    let opaque = DynamicImage::ImageRgb8(image.to_rgb8());
    let best = limit.jpeg_quality;
    let lower = JPEG_QUALITIES.iter().filter(|quality| **quality < best);
    let png = png(image).map(|data| (data, "image/png"));
    let candidates = [png, jpeg(&opaque, best).map(|data| (data, "image/jpeg"))];
    let smallest =
        candidates.into_iter().flatten().filter(|(data, _)| fits(data)).min_by_key(|(data, _)| data.len());
    smallest.or_else(|| {
        let mut tries = lower.filter_map(|quality| jpeg(&opaque, *quality));
        tries.find(fits).map(|data| (data, "image/jpeg"))
    })
}

fn png(image: &DynamicImage) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    // Formats with more than eight bits a channel are of no use to a model.
    let image = if image.color().has_alpha() {
        DynamicImage::ImageRgba8(image.to_rgba8())
    } else {
        DynamicImage::ImageRgb8(image.to_rgb8())
    };
    let encoder = PngEncoder::new(&mut data);
    encoder.write_image(image.as_bytes(), image.width(), image.height(), image.color().into()).ok()?;
    Some(data)
}

fn jpeg(image: &DynamicImage, quality: u8) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    image.write_with_encoder(JpegEncoder::new_with_quality(&mut data, quality)).ok()?;
    Some(data)
}

fn encoded_bytes(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

fn scaled(side: u32, scale: f64) -> u32 {
    // Saturates, and no side vanishes.
    ((f64::from(side) * scale).round() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32, noise: bool) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(1);
        let image = image::RgbImage::from_fn(width, height, |x, _| {
            if noise {
                image::Rgb([random.u8(..), random.u8(..), random.u8(..)])
            } else {
                image::Rgb([(x % 256) as u8, 128, 200])
            }
        });
        png(&DynamicImage::ImageRgb8(image)).unwrap()
    }

    #[test]
    fn images_are_recognised_by_their_bytes() {
        assert_eq!(image_type(&picture(1, 1, false)), Some("image/png"));
        assert_eq!(image_type(b"\x89PNG\r\n\x1a\n0000000000000000"), None);
        assert_eq!(image_type(b"\xff\xd8\xff\xe0abc"), Some("image/jpeg"));
        assert_eq!(image_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(image_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(image_type(b"BM is no bitmap, it is text"), None);
        assert_eq!(image_type(b"B"), None);
    }

    #[test]
    fn a_small_image_stays_as_it_is() {
        let bytes = picture(4, 3, false);
        let sent = fit(&bytes, "image/png", ImageLimit::default()).unwrap();
        assert_eq!((sent.data, sent.mime_type, sent.notes), (STANDARD.encode(&bytes), "image/png", vec![]));
    }

    #[test]
    fn a_large_image_is_made_smaller_and_says_so() {
        let sent = fit(&picture(3000, 1500, false), "image/png", ImageLimit::default()).unwrap();
        let expected = "[Image: original 3000x1500, displayed at 2000x1000. Multiply coordinates by 1.50 to map to original image.]";
        assert_eq!(sent.notes, [expected]);
        let image = decode(&STANDARD.decode(sent.data).unwrap()).unwrap();
        assert_eq!((image.width(), image.height()), (2000, 1000));
    }

    #[test]
    fn an_image_of_too_many_bytes_becomes_a_jpeg() {
        let sent = fit(&picture(1500, 1300, true), "image/png", ImageLimit::default()).unwrap();
        assert_eq!(sent.mime_type, "image/jpeg");
        assert!(sent.data.len() < ImageLimit::default().bytes);
        assert!(sent.notes[0].starts_with("[Image: original 1500x1300, displayed at 1500x1300."));
    }

    #[test]
    fn a_model_may_have_limits_of_its_own() {
        let model = |resize: serde_json::Value| {
            let limits = serde_json::json!({ "images": { "resize": resize } });
            let mut model = Model::default();
            model.extra.insert("inputLimits".into(), limits);
            ImageLimit::of(&model)
        };
        let own = model(
            serde_json::json!({ "maxWidth": 300, "maxHeight": 100, "maxBytes": 9000, "jpegQuality": 40 }),
        );
        assert_eq!(own, ImageLimit { width: 300, height: 100, bytes: 9000, jpeg_quality: 40 });
        let usual = ImageLimit::default();
        assert_eq!(model(serde_json::json!({ "maxWidth": 0, "maxHeight": "x" })), usual);
        assert_eq!(model(serde_json::json!({ "maxHeight": 7 })), ImageLimit { height: 7, ..usual });
        assert_eq!(ImageLimit::of(&Model::default()), usual);

        let sent = fit(&picture(400, 200, true), "image/png", own).unwrap();
        let image = decode(&STANDARD.decode(&sent.data).unwrap()).unwrap();
        assert_eq!((image.width(), image.height()), (200, 100));
        assert_eq!(sent.mime_type, "image/jpeg");
        assert!(sent.data.len() < 9000);
    }

    #[test]
    fn a_bitmap_becomes_an_image_that_models_take() {
        let mut bytes = Vec::new();
        let image = DynamicImage::ImageRgb8(image::RgbImage::new(5, 5));
        image.write_to(&mut Cursor::new(&mut bytes), image::ImageFormat::Bmp).unwrap();
        assert_eq!(image_type(&bytes), Some("image/bmp"));
        for sent in
            [fit(&bytes, "image/bmp", ImageLimit::default()).unwrap(), as_is(&bytes, "image/bmp").unwrap()]
        {
            assert_eq!(sent.mime_type, "image/png");
            assert_eq!(sent.notes, ["[Image converted from image/bmp to image/png.]"]);
        }
    }

    #[test]
    fn the_sides_are_told_without_reading_all_of_an_image() {
        let whole = STANDARD.encode(picture(800, 650, true));
        assert!(whole.len() > 2 * HEAD_CHARS);
        assert_eq!(sides(&whole), Some((800, 650)));
        assert_eq!(sides(&whole[..HEAD_CHARS]), Some((800, 650)));
        assert_eq!(sides(&STANDARD.encode(picture(3, 4, false))), Some((3, 4)));
        assert_eq!((sides("QUJD"), sides("no b64!"), sides("")), (None, None, None));
    }

    #[test]
    fn what_cannot_be_decoded_is_none() {
        assert!(fit(b"\xff\xd8\xff\xe0abc", "image/jpeg", ImageLimit::default()).is_none());
    }
}
