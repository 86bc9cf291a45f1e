"""The commands, one file each; `strandline.cli.index` lists them."""
