//! bash
