"""A small OpenID Connect provider, as a process of its own. It signs in whoever it was told last."""

import base64
import hashlib
import json
import secrets
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "chat", "provider-secret"


class Provider(BaseHTTPRequestHandler):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    identity: dict = {}
    codes: dict[str, dict] = {}
    fetched: list[str] = []
    url = ""

    def do_GET(self):
        parts = urlsplit(self.path)
        self.fetched.append(parts.path)
        match parts.path:
            case "/.well-known/openid-configuration":
                self._answer(self._configuration())
            case "/jwks":
                jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
                self._answer({"keys": [{**jwk, "kid": "1", "use": "sig", "alg": "RS256"}]})
            case "/authorize":
                self._authorize({name: values[0] for name, values in parse_qs(parts.query).items()})
            case "/userinfo":
                self._answer(self.identity)
            case "/fetched":
                self._answer(self.fetched)
            case _:
                self._answer({}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/identity":
            type(self).identity = json.loads(body)
            self.fetched.clear()
            self._answer({})
            return
        self._token({name: values[0] for name, values in parse_qs(body).items()})

    def _configuration(self):
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "userinfo_endpoint": "userinfo"}
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            **{name: f"{self.url}/{path}" for name, path in places.items()},
        }

    def _authorize(self, asked):
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        self.send_response(302)
        self.send_header("Location", f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")
        self.end_headers()

    def _token(self, sent):
        asked = self.codes.pop(sent.get("code", ""), None)
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or sent.get("client_secret") != CLIENT_SECRET or asked.get("code_challenge") != challenge:
            self._answer({"error": "invalid_grant"}, 400)
            return
        claims = {"iss": self.url, "aud": CLIENT_ID, "iat": int(time.time()), "exp": int(time.time()) + 60}
        claims |= {"nonce": asked.get("nonce")} | self.identity
        id_token = jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "1"})
        self._answer({"access_token": "access", "token_type": "Bearer", "id_token": id_token})

    def _answer(self, body, status=200):
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_arguments):
        pass


if __name__ == "__main__":
    port = int(sys.argv[1])
    Provider.url = f"http://127.0.0.1:{port}"
    ThreadingHTTPServer(("127.0.0.1", port), Provider).serve_forever()
