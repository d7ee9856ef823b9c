# docker build -t firmlib . && docker run --rm firmlib
# A plain Python, this folder, and the environment of requirements.lock; it runs `make reproduce`.
FROM python:3.13-slim-bookworm

# Any version of these three will do.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends make git libgomp1 \
 && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home --uid 1000 reader && install -d -o reader /home/reader/firmlib
USER 1000
WORKDIR /home/reader/firmlib

# The environment first: it stays as long as the lock does.
COPY --chown=reader Makefile pyproject.toml requirements.lock README.md LICENSE ./
COPY --chown=reader workflow ./workflow
COPY --chown=reader firmlib ./firmlib
RUN make setup

COPY --chown=reader . .
CMD ["make", "reproduce"]
