"""KDD99, the network connections of the UCI archive (the 10% file), in 396 bits as in the paper."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import BinaryIO

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.paper.datasets.bins import equal_bins

ROWS = 494_021
SHA256 = "b3e50001604997152f195ad02f0fbc8ae27a2ae59d58ce2554022879578aa43a"
URL = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/kddcup99-mld/"
    "kddcup.data_10_percent.gz"
)

COLUMNS = (
    "duration", "protocol_type", "service", "flag", "src_bytes", "dst_bytes", "land",
    "wrong_fragment", "urgent", "hot", "num_failed_logins", "logged_in", "num_compromised",
    "root_shell", "su_attempted", "num_root", "num_file_creations", "num_shells",
    "num_access_files", "num_outbound_cmds", "is_host_login", "is_guest_login", "count",
    "srv_count", "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate",
    "same_srv_rate", "diff_srv_rate", "srv_diff_host_rate", "dst_host_count",
    "dst_host_srv_count", "dst_host_same_srv_rate", "dst_host_diff_srv_rate",
    "dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate", "dst_host_serror_rate",
    "dst_host_srv_serror_rate", "dst_host_rerror_rate", "dst_host_srv_rerror_rate", "label",
)  # fmt: skip

# All 66 services of the file in alphabetical order, except for the last, `whois`. The authors'
# program cuts the codes 0 to 65 into 65 bins, and the last bin includes its upper end, so `whois`
# shares the bin of `vmnet`. That bin is the attribute's default, which a clamped cell gets.
_SERVICES = (
    "IRC X11 Z39_50 auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i ecr_i "
    "efs exec finger ftp ftp_data gopher hostnames http http_443 imap4 iso_tsap klogin kshell ldap "
    "link login mtp name netbios_dgm netbios_ns netbios_ssn netstat nnsp nntp ntp_u other pm_dump "
    "pop_2 pop_3 printer private red_i remote_job rje shell smtp sql_net ssh sunrpc supdup systat "
    "telnet tftp_u tim_i time urh_i urp_i uucp uucp_path vmnet"
)
_FLAGS = "OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH"

_RANGES = {
    "duration": (60_000, 20),
    "src_bytes": (700_000_000, 20),
    "dst_bytes": (6_000_000, 20),
    "hot": (30, 10),
    "num_compromised": (900, 10),
    "num_root": (1_000, 5),
    "num_file_creations": (30, 5),
    "num_access_files": (10, 5),
    "count": (600, 10),
    "srv_count": (600, 10),
    "dst_host_count": (255, 10),
    "dst_host_srv_count": (255, 10),
}
_CODES = {
    "land": 2,
    "wrong_fragment": 4,
    "urgent": 4,
    "num_failed_logins": 6,
    "logged_in": 2,
    "root_shell": 2,
    "su_attempted": 3,
    "num_shells": 3,
    "num_outbound_cmds": 2,
    "is_host_login": 2,
    "is_guest_login": 2,
}


def schema() -> Schema:
    """The 41 features of the paper's experiments: 396 bits. Read with cells clamped."""
    return Schema(tuple(_attribute(name) for name in COLUMNS[:-1]))


def _attribute(name: str) -> Attribute:
    if name == "protocol_type":
        return Attribute.categorical(name, ("icmp", "tcp", "udp"))
    if name == "service":
        return Attribute.categorical(name, _SERVICES.split(), default="vmnet")
    if name == "flag":
        return Attribute.categorical(name, _FLAGS.split())
    if name in _CODES:
        # The codes are text, not numbers, so that a flag has one bit per value, as in the paper.
        return Attribute.categorical(name, [str(code) for code in range(_CODES[name])])
    return equal_bins(name, *_RANGES.get(name, (1, 10)))


def prepare(raw: BinaryIO) -> Iterator[bytes]:
    """The published file as a table with a header, and labels without their full stop."""
    yield ",".join(COLUMNS).encode() + b"\n"
    with gzip.GzipFile(fileobj=raw) as lines:
        for line in lines:
            cells = line.strip().rstrip(b".")
            if cells:
                yield cells + b"\n"
