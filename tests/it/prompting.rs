//! prompting
