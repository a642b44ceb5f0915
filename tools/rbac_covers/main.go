// Records which RBAC rules cover which others, by Kubernetes' own code (auth/rbac/validation.Covers).
// The rows are generated from a fixed seed; tests/unit/sandbox/apiserver/test_escalation.py compares argosy with each of them.
//
//	cd tools/rbac_covers && go run . | gzip -9n > ../../tests/data/rbac/covers.jsonl.gz
package main

import (
	"bufio"
	"encoding/json"
	"math/rand"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

const rows = 3000

var (
	verbs     = []string{"*", "get", "list", "bind", "escalate", ""}
	groups    = []string{"*", "", "apps"}
	resources = []string{"*", "pods", "pods/log", "*/log", "secrets", "pods/*", "*/*", ""}
	names     = []string{"", "a", "b", "*"}
	urls      = []string{"*", "/", "/*", "/healthz", "/healthz/*", "/healthz/a", "/healthz*", "/healthz/**", "/metrics", "**", ""}
)

// some returns up to `most` different values, none for `most` 0.
func some(random *rand.Rand, values []string, least, most int) []string {
	count := least + random.Intn(most-least+1)
	var chosen []string
	for _, index := range random.Perm(len(values))[:count] {
		chosen = append(chosen, values[index])
	}
	return chosen
}

func rule(random *rand.Rand) rbacv1.PolicyRule {
	made := rbacv1.PolicyRule{Verbs: some(random, verbs, 1, 2)}
	shape := random.Intn(10)
	if shape < 7 { // a few rules have both halves, which validation refuses and old objects may have
		made.APIGroups = some(random, groups, 1, 2)
		made.Resources = some(random, resources, 1, 2)
		if random.Intn(2) == 0 {
			made.ResourceNames = some(random, names, 1, 2)
		}
	}
	if shape > 5 {
		made.NonResourceURLs = some(random, urls, 1, 2)
	}
	return made
}

func rules(random *rand.Rand, least, most int) []rbacv1.PolicyRule {
	made := []rbacv1.PolicyRule{}
	for count := least + random.Intn(most-least+1); count > 0; count-- {
		made = append(made, rule(random))
	}
	return made
}

// flat writes a rule as five lists, which is a third of its JSON.
func flat(rules []rbacv1.PolicyRule) [][5][]string {
	made := [][5][]string{}
	for _, each := range rules {
		row := [5][]string{each.Verbs, each.APIGroups, each.Resources, each.ResourceNames, each.NonResourceURLs}
		for index, values := range row {
			if values == nil {
				row[index] = []string{}
			}
		}
		made = append(made, row)
	}
	return made
}

func main() {
	random := rand.New(rand.NewSource(20))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for range rows {
		owner, granted := rules(random, 0, 3), rules(random, 1, 2)
		if random.Intn(3) == 0 && len(owner) > 0 { // hand out a part of what one has
			granted = []rbacv1.PolicyRule{owner[random.Intn(len(owner))]}
			granted[0].Verbs = granted[0].Verbs[:1]
		}
		_, uncovered := validation.Covers(owner, granted)
		if err := encoder.Encode([]any{flat(owner), flat(granted), flat(uncovered)}); err != nil {
			panic(err)
		}
	}
}
