# `make` and `make install`, which `pgxn install` calls; `cargo xtask` does everything else.

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
