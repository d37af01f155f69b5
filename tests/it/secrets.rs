//! secrets
