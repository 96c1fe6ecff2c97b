"""The HTTP service: a thin layer over `constrained`; `create_app` in `api/app.py` is the way in."""
