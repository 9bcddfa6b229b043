// Empty: cargo wants a target. See Cargo.toml.
