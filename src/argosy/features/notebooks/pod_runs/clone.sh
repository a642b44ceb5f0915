#!/bin/sh
# Fetches one commit of a repository: clone.sh URL REF FOLDER FILE
# Inputs are arguments, never shell text. Credentials are files in the folder $CREDENTIALS.
# Exit codes: 10 access denied, 11 revision not found, 12 no response, 13 file not found.
# The termination message is the commit, or the error.
set -u
umask 0 # the notebook may run as another user; only this Pod uses the volume
url=$1 ref=$2 folder=$3 file=$4
told=${TERMINATION_LOG:-/dev/termination-log}
given=${SETTINGS:-/opt/argosy/order}
CREDENTIALS=${CREDENTIALS:-}
export GIT_HTTP_LOW_SPEED_LIMIT=1000 GIT_HTTP_LOW_SPEED_TIME=60 # a host that sends nothing for a minute is down
export LC_ALL=C GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=http:https:ssh:git CREDENTIALS

end() {
	printf '%s\n' "$2" >&2
	printf '%s' "$2" | head -c 2000 >"$told"
	exit "$1"
}

own=$(umask 077 && mktemp -d) || end 126 "cannot create a temporary folder in the image; set GIT_INIT_IMAGE to another image"
trap 'rm -rf "$own"' EXIT
command -v git >/dev/null || end 127 "git not found in the image; set GIT_INIT_IMAGE to an image that contains it"
for each in "$url" "$ref" "$file"; do
	case $each in -*) end 11 "$each starts with a dash; correct it" ;; esac
done
case $ref in *:* | +*) end 11 "$ref is not a branch, tag or commit; correct it" ;; esac

# -- credentials and host keys
rest=${url#*://}
rest=${rest%%/*}
GIT_HOST=${rest##*@} # with its port
if [ -n "$CREDENTIALS" ] && [ -f "$CREDENTIALS/ssh-privatekey" ]; then
	hosts=$given/known_hosts
	[ -f "$CREDENTIALS/known_hosts" ] && hosts=$CREDENTIALS/known_hosts
	[ -s "$hosts" ] || end 10 "no SSH host keys are known; add known_hosts to the Secret, or to argocd-ssh-known-hosts-cm"
	(umask 077 && cat "$CREDENTIALS/ssh-privatekey" >"$own/key" && echo >>"$own/key" && cat "$hosts" >"$own/hosts")
	export GIT_SSH_COMMAND="ssh -i $own/key -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o StrictHostKeyChecking=yes -o UserKnownHostsFile=$own/hosts"
elif [ -n "$CREDENTIALS" ]; then
	if [ ! -f "$CREDENTIALS/username" ] || { [ ! -f "$CREDENTIALS/password" ] && [ ! -f "$CREDENTIALS/token" ]; }; then
		end 10 "the Secret has neither ssh-privatekey nor username with password or token; add one of them"
	fi
# Do not send credentials to another host after a redirect.
	cat >"$own/ask" <<'END'
#!/bin/sh
case $1 in *"://$GIT_HOST'"* | *"@$GIT_HOST'"*) ;; *) exit 1 ;; esac
case $1 in
Username*) cat "$CREDENTIALS/username" ;;
*) cat "$CREDENTIALS/password" 2>/dev/null || cat "$CREDENTIALS/token" ;;
esac
END
	chmod 700 "$own/ask"
	export GIT_HOST GIT_ASKPASS="$own/ask"
fi
[ -s "$given/ca-${GIT_HOST%%:*}.crt" ] && export GIT_SSL_CAINFO="$given/ca-${GIT_HOST%%:*}.crt"
[ -n "$CREDENTIALS" ] && [ -f "$CREDENTIALS/ca.crt" ] && export GIT_SSL_CAINFO="$CREDENTIALS/ca.crt"

# -- fetching
kind_of_failure() {
	case $(cat "$own/said") in
	*"Authentication failed"* | *"could not read Username"* | *"could not read Password"* | *"ermission denied"* | \
		*"Host key verification failed"* | *"error: 401"* | *"error: 403"* | *"terminal prompts disabled"*) echo 10 ;;
	*"find remote ref"* | *"not our ref"* | *"unadvertised object"* | *"not found"* | *"not appear to be a git"* | *"invalid refspec"*) echo 11 ;;
	*) echo 12 ;;
	esac
}

fail() {
	end "$(kind_of_failure)" "$(grep -v '^hint:' "$own/said" | tail -n 4 | head -c 1500)"
}

rm -rf "$folder"
git init -q "$folder" 2>"$own/said" || fail
if git -C "$folder" fetch -q --depth 1 --no-tags "$url" "$ref" 2>"$own/said"; then
	commit=$(git -C "$folder" rev-parse --verify -q 'FETCH_HEAD^{commit}') || fail
else
	[ "$(kind_of_failure)" = 11 ] || fail
	case $ref in
	*[!0-9a-f]* | ?????? | ????? | ???? | ??? | ?? | ?) fail ;;
	esac
# The host does not serve the commit by name, or the ref is an abbreviated commit: fetch all branches and look there.
	git -C "$folder" fetch -q --tags "$url" '+refs/heads/*:refs/remotes/origin/*' 2>"$own/said" || fail
	commit=$(git -C "$folder" rev-parse --verify -q "$ref^{commit}") || end 11 "revision $ref not found in the repository; correct the ref"
fi
git -C "$folder" -c advice.detachedHead=false checkout -q --detach "$commit" 2>"$own/said" || fail
case /$file/ in */../*) end 13 "$file is outside of the repository; correct the path" ;; esac
[ -f "$folder/$file" ] || end 13 "file $file not found at $commit; correct the path"
printf '%s' "$commit" >"$told"
printf '%s is at %s\n' "$ref" "$commit"
