"""What tests of the emitter share: builders of values, a recording server, a relay that misbehaves, checks of schemas."""
