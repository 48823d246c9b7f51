def report_page(store, study):
    return "<!doctype html><title>report</title>", "default-src 'none'"
