"""The client's address: of the connection, and of what trusted proxies say, never of what anybody else says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from gateway.config import SettingsError, parse
from gateway.serve.incoming.addresses import MOST_HOPS, Proxies, within, written

FAR = "203.0.113.7"


def proxies(*networks):
    return Proxies(parse(f"server: {{trusted_proxies: [{', '.join(networks)}]}}", {}).server.trusted_proxies)


def headers(*pairs):
    return CIMultiDict(pairs)


X, F = "X-Forwarded-For", "Forwarded"
CHAINS = [
    # trusted, the connection's other end, headers, the client
    ([], "10.0.0.1", [(X, FAR)], "10.0.0.1"),
    (["10.0.0.0/8"], "192.0.2.1", [(X, FAR)], "192.0.2.1"),
    (["10.0.0.0/8"], "10.0.0.1", [], "10.0.0.1"),
    (["10.0.0.0/8"], "10.0.0.1", [(X, FAR)], FAR),
    (["10.0.0.0/8"], "10.0.0.1", [(X, f"1.1.1.1, {FAR}")], FAR),
    (["10.0.0.0/8"], "10.0.0.1", [(X, f"1.1.1.1,{FAR} , 10.0.0.2")], FAR),
    (["10.0.0.0/8"], "10.0.0.1", [(X, "1.1.1.1"), (X, f"{FAR}, 10.9.9.9")], FAR),
    (["10.0.0.0/8"], "10.0.0.1", [(X, "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
    (["10.0.0.0/8"], "10.0.0.1", [(X, f"{FAR}, nonsense")], "10.0.0.1"),
    (["10.0.0.0/8"], "10.0.0.1", [(X, f"{FAR}, unknown, 10.0.0.2")], "10.0.0.2"),
    (["10.0.0.0/8"], "10.0.0.1", [(X, "")], "10.0.0.1"),
    (["10.0.0.0/8"], "10.0.0.1", [(X, f"{FAR}:4711")], FAR),
    (["10.0.0.0/8"], "10.0.0.1", [(X, "[2001:DB8::1]:80")], "2001:db8::1"),
    (["10.0.0.0/8"], "::ffff:10.0.0.1", [(X, f"::ffff:{FAR}")], FAR),
    (["fd00::/8"], "fd00::1%eth0", [(X, FAR)], FAR),
    (["unix"], "", [(X, FAR)], FAR),
    (["10.0.0.0/8"], "", [(X, FAR)], ""),
    (["10.0.0.0/8"], "10.0.0.1", [(F, f"for={FAR}")], FAR),
    (["10.0.0.0/8"], "10.0.0.1", [(F, f'for=1.1.1.1;proto=https, By=x;For="{FAR}:80"')], FAR),
    (["10.0.0.0/8"], "10.0.0.1", [(F, 'for="[2001:db8::1]:80", for=10.0.0.2')], "2001:db8::1"),
    (["10.0.0.0/8"], "10.0.0.1", [(F, 'for="a,for=1.1.1.1"')], "10.0.0.1"),
    (["10.0.0.0/8"], "10.0.0.1", [(F, f"for={FAR}, for=_hidden")], "10.0.0.1"),
    (["10.0.0.0/8"], "10.0.0.1", [(F, f"for={FAR}, proto=https")], "10.0.0.1"),
    (["10.0.0.0/8"], "10.0.0.1", [(X, FAR), (F, f"for={FAR}")], FAR),
    (["10.0.0.0/8"], "10.0.0.1", [(X, FAR), (F, "for=1.1.1.1")], "10.0.0.1"),
]


@pytest.mark.parametrize(("trusted", "peer", "given_headers", "client"), CHAINS)
def test_the_first_address_from_the_right_that_is_no_trusted_proxy_is_the_clients(trusted, peer, given_headers, client):
    assert proxies(*trusted).client(peer, headers(*given_headers)) == client


@given(st.text(max_size=80), st.sampled_from([X, F]))
def test_whatever_a_client_claims_its_proxy_appends_the_truth(claim, name):
    own = f"for={FAR}" if name == F else FAR
    value = claim.replace('"', "") + ", " + own
    assert proxies("10.0.0.0/8").client("10.0.0.1", headers((name, value))) == FAR


@given(st.text(max_size=80), st.sampled_from([X, F]))
def test_an_address_is_returned_or_the_proxys_own(value, name):
    found = proxies("10.0.0.0/8").client("10.0.0.1", headers((name, value)))
    assert written(found) == found != ""


def test_a_chain_without_end_is_not_followed_to_its_end():
    chain = ", ".join(f"10.0.{number // 256}.{number % 256}" for number in range(5000))
    found = proxies("10.0.0.0/8").client("10.1.0.1", headers((X, chain)))
    assert found == f"10.0.{(5000 - MOST_HOPS) // 256}.{(5000 - MOST_HOPS) % 256}"


WRONG = [
    ("trusted_proxies: [10.0.0.1/8]", "did you mean 10.0.0.0/8"),
    ("trusted_proxies: proxy.example", "an address or a network"),
    ("trusted_proxies: [10.0.0.0/8, '*']", "an address or a network"),
    ("base_path: llm", "a path such as /llm"),
    ("base_path: /llm/v1", "/v1 comes after it by itself"),
    ("base_path: /a/../b", "a path such as /llm"),
    ("base_path: /a%2fb", "a path such as /llm"),
    ("base_path: //a", "a path such as /llm"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_wrong_network_or_path_is_told(text, says):
    with pytest.raises(SettingsError, match=says):
        parse(f"server: {{{text}}}", {})


def test_a_single_address_is_a_network_and_a_slash_at_the_end_is_taken_off():
    server = parse("server: {trusted_proxies: 10.0.0.1, base_path: /llm/}", {}).server
    assert within("10.0.0.1", server.trusted_proxies)
    assert not within("10.0.0.2", server.trusted_proxies)
    assert server.base_path == "/llm"
