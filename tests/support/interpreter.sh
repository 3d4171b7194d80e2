#!/usr/bin/env bash
# interpreter.sh FOLDER VERSION SUITE [OPTION OF CONFIGURE ...]: builds that CPython once, into FOLDER, with an environment
# for tests. The source is Debian's package of that suite, fetched by apt with settings of its own, so that the machine's
# are left alone. Needs a Debian or a derivative, a C compiler, and the headers that CPython builds with.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
version=$2
suite=$3
shift 3
project=$(cd "$(dirname "$0")/../.." && pwd)
python="$folder/python/bin/python$version"

fail() {
    echo "interpreter: $1" >&2
    exit 1
}

fetch() { # the source of the interpreter, from the archive that this machine installs its packages from
    command -v apt-get >/dev/null || fail "no apt-get here: the source of CPython $version is a package of Debian's"
    local archive apt
    archive=$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/\?$' | head -n 1)
    test -n "$archive" || fail 'apt knows no archive of Debian'
    mkdir -p "$folder"/apt/{lists/partial,cache/archives/partial,parts} "$folder/source"
    printf '%s\n' 'Types: deb-src' "URIs: $archive" "Suites: $suite" 'Components: main' \
        'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' > "$folder/apt/parts/source.sources"
    apt=(-qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$folder/apt/parts"
        -o "Dir::State::Lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache" -o APT::Sandbox::User=root)
    apt-get "${apt[@]}" update
    (cd "$folder/apt" && apt-get "${apt[@]}" source --download-only "python$version")
    tar -xf "$folder/apt/python${version}"_*.orig.tar.xz -C "$folder/source" --strip-components=1
}

build() {
    mkdir -p "$folder/build" && cd "$folder/build" &&
        ../source/configure -q --prefix="$folder/python" --disable-test-modules --without-static-libpython "$@" &&
        make -s -j"$(nproc)" &&
        make -s install
}

if ! test -x "$python"; then
    rm -rf "$folder/apt" "$folder/source" "$folder/build"
    fetch
    echo "interpreter: building CPython $version, some minutes; what it says is in $folder/build.log"
    (build "$@") > "$folder/build.log" 2>&1 || { tail -n 20 "$folder/build.log" >&2; fail 'CPython was not built'; }
    rm -rf "$folder/apt" "$folder/source" "$folder/build"
fi

if ! test -f "$folder/venv/.ready" || test "$project/pyproject.toml" -nt "$folder/venv/.ready"; then
    "$python" -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
    # What is written in C or Rust and takes long to build comes as a wheel or not at all. Not the group dev: some of its
    # tools have no wheel for a new interpreter, and these tests need none of them.
    # google-re2 has no wheel for an interpreter without a global lock; no test of these has a regular expression.
    "$python" -c 'import sys, tomllib
for needed in tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]:
    needed.startswith("google-re2") or print(needed)' "$project/pyproject.toml" > "$folder/requirements.txt"
    "$folder/venv/bin/pip" install -qq --disable-pip-version-check --no-deps --editable "$project"
    "$folder/venv/bin/pip" install -qq --disable-pip-version-check --only-binary pydantic-core,hypothesis,rpds-py \
        --requirement "$folder/requirements.txt" 'pytest>=8.3' 'pytest-timeout>=2.3' 'hypothesis>=6.100' 'jsonschema>=4.20' \
        'sortedcontainers>=2.4' 'fasteners>=0.19' 'readerwriterlock>=1.0.9'
    touch "$folder/venv/.ready"
fi
