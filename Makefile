# `make` and `make install` as `pgxn install` calls them; everything else is done by `cargo xtask`.

PG_CONFIG ?= pg_config
CARGO ?= cargo

.PHONY: all install installcheck clean

all:
	$(CARGO) xtask package --pg-config $(PG_CONFIG)

install:
	$(CARGO) xtask install --pg-config $(PG_CONFIG)

installcheck:
	$(CARGO) xtask test regress --pg-config $(PG_CONFIG)

clean:
	$(CARGO) xtask clean
