# GNU make lists the sources, so that a later `make` builds what changed. Another make sees an empty
# list.
NRLLM_SOURCES = $(NRLLM_CRATE)/Cargo.toml $(NRLLM_CRATE)/Cargo.lock $(NRLLM_CRATE)/build.rs \
	$(wildcard $(NRLLM_CRATE)/src/*.rs $(NRLLM_CRATE)/src/*/*.rs $(NRLLM_CRATE)/src/*/*/*.rs)

# The extension is a real file, so that `sudo make install` only copies it: root needs no cargo, and
# leaves no files of its own in the user's target folder. MAKEFLAGS is emptied because cargo would
# use make's job server as its own.
$(phplibdir)/nrllm_runtime.so: $(NRLLM_SOURCES)
	@mkdir -p $(phplibdir)
	target="$${CARGO_TARGET_DIR:-$(NRLLM_CRATE)/target}" && cd $(NRLLM_CRATE) \
	&& MAKEFLAGS= PATH="`dirname $(CARGO)`:$$PATH" PHP_CONFIG=$(NRLLM_PHP_CONFIG) PHP=$(NRLLM_PHP) \
		$(CARGO) build --release --locked --lib --target-dir "$$target" \
	&& cp "$$target/release/$(NRLLM_LIBRARY)" $(phplibdir)/.nrllm_runtime.so \
	&& mv -f $(phplibdir)/.nrllm_runtime.so $@

# `make test` reads the file's name from it. `make install` deletes it from modules/, as it does
# libtool's.
$(phplibdir)/nrllm_runtime.la: $(phplibdir)/nrllm_runtime.so
	@echo "dlname='nrllm_runtime.so'" > $@
