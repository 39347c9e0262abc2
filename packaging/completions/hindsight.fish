complete --keep-order --exclusive --command hindsight --arguments "(COMPLETE=fish hindsight -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
