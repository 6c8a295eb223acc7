package main

import (
	_ "github.com/CycloneDX/cyclonedx-go"
)

func main() {}
