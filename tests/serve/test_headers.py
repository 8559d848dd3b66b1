"""Headers: what ends at the gateway ends there, and everything else travels both ways."""

from multidict import CIMultiDict

from gateway.serve.incoming.headers import forwarded, returned

CLIENT = CIMultiDict(
    [
        ("Host", "gateway"),
        ("Authorization", "Bearer k"),
        ("Content-Length", "5"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Expect", "100-continue"),
        ("X-Turnfold-Mode", "off"),
        ("OpenAI-Organization", "org"),
        ("Idempotency-Key", "i"),
        ("X-Many", "1"),
        ("X-Many", "2"),
    ]
)


def test_the_clients_headers_travel_but_for_the_hop_and_our_own() -> None:
    """Case 113."""
    assert list(forwarded(CLIENT).items()) == [
        ("Authorization", "Bearer k"),
        ("OpenAI-Organization", "org"),
        ("Idempotency-Key", "i"),
        ("X-Many", "1"),
        ("X-Many", "2"),
    ]


def test_a_second_connection_header_names_headers_too() -> None:
    headers = CIMultiDict([("Connection", "keep-alive"), ("Connection", "x-hop"), ("X-Hop", "1"), ("X-Other", "2")])
    assert list(forwarded(headers)) == list(returned(headers)) == ["X-Other"]


def test_what_says_how_a_body_is_read_travels_on_whatever_a_connection_header_names() -> None:
    about_body = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")]
    headers = CIMultiDict([("Connection", "content-type, Content-Encoding, x-hop"), ("X-Hop", "1"), *about_body])
    assert list(forwarded(headers).items()) == list(returned(headers).items()) == about_body


def test_the_upstreams_headers_come_back_with_their_length_and_none_that_claims_to_be_ours() -> None:
    upstream = CIMultiDict(
        [
            ("Content-Length", "5"),
            ("Connection", "close"),
            ("Retry-After", "3"),
            ("Set-Cookie", "a"),
            ("Set-Cookie", "b"),
            ("X-Turnfold-Action", "forged"),
        ]
    )

    assert list(returned(upstream).items()) == [
        ("Content-Length", "5"),
        ("Retry-After", "3"),
        ("Set-Cookie", "a"),
        ("Set-Cookie", "b"),
    ]
