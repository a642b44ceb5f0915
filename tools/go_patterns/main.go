// Prints what Go's regexp says: whether a pattern compiles, and which texts it matches.
// In: JSON on stdin, a list of {"pattern", "texts", "template"}. Out: the list with "error" or "matches" added, and for
// each text, if there is a template, what Find, Replace, Split and QuoteMeta give.
// Run by tools/record_go_patterns.py.
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

type row struct {
	Pattern  string   `json:"pattern"`
	Texts    []string `json:"texts"`
	Template *string  `json:"template,omitempty"`
	Error    string   `json:"error,omitempty"`
	Matches  []bool   `json:"matches,omitempty"`
	Edits    []edit   `json:"edits,omitempty"`
}

type edit struct {
	All      []string `json:"all"`
	Replaced string   `json:"replaced"`
	Literal  string   `json:"literal"`
	Parts    []string `json:"parts"`
	TwoParts []string `json:"two_parts"`
	Quoted   string   `json:"quoted"`
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
			if template := rows[i].Template; template != nil {
				rows[i].Edits = append(rows[i].Edits, edit{
					All:      compiled.FindAllString(text, -1),
					Replaced: compiled.ReplaceAllString(text, *template),
					Literal:  compiled.ReplaceAllLiteralString(text, *template),
					Parts:    compiled.Split(text, -1), TwoParts: compiled.Split(text, 2),
					Quoted: regexp.QuoteMeta(text),
				})
			}
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(rows); err != nil {
		panic(err)
	}
}
