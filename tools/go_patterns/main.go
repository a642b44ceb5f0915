// Prints what Go's regexp says: whether a pattern compiles, and which texts it matches.
// In: JSON on stdin, a list of {"pattern", "texts"}. Out: the list with "error" or "matches" added.
// Run by tools/record_go_patterns.py.
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

type row struct {
	Pattern string   `json:"pattern"`
	Texts   []string `json:"texts"`
	Error   string   `json:"error,omitempty"`
	Matches []bool   `json:"matches,omitempty"`
}

func main() {
	var rows []row
	if err := json.NewDecoder(os.Stdin).Decode(&rows); err != nil {
		panic(err)
	}
	for i := range rows {
		compiled, err := regexp.Compile(rows[i].Pattern)
		if err != nil {
			rows[i].Error = err.Error()
			continue
		}
		for _, text := range rows[i].Texts {
			rows[i].Matches = append(rows[i].Matches, compiled.MatchString(text))
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(rows); err != nil {
		panic(err)
	}
}
