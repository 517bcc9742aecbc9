"""The tree of Qualcomm's SDK, for scripts that expect one: tools, libraries, headers, set-up scripts."""
