"""The model server's twin: TGI's protocol with a deterministic answer, a token clock and every fault on request."""
