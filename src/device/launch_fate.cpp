#include "device/launch_fate.h"

#include <algorithm>

namespace infeed {

LaunchFate::Mark LaunchFate::mark(const std::shared_ptr<LaunchFate>& fate) {
  const std::lock_guard lock(fate->mutex_);
  return fate->last_ == 0 ? Mark{} : Mark{fate, fate->last_};
}

std::uint64_t LaunchFate::launched() {
  const std::lock_guard lock(mutex_);
  running_.push_back(++last_);
  return last_;
}

void LaunchFate::settle(std::uint64_t number, const std::string& error) {
  const std::lock_guard lock(mutex_);
  std::erase(running_, number);
  if (error.empty() || !error_.empty()) return;
  error_ = error;
  failed_at_ = number;
}

// Most streams wait for copies, behind which nothing was launched: links are few, and go when they are known to be good.
void LaunchFate::inherit(const Mark& mark) {
  if (mark.fate == nullptr || mark.fate.get() == this) return;
  if (mark.fate->settled_well(mark.place)) return;
  std::vector<Link> links;
  {
    const std::lock_guard lock(mutex_);
    links = links_;
  }
  std::erase_if(links, [](const Link& link) { return link.from.fate->settled_well(link.from.place); });
  const std::lock_guard lock(mutex_);
  links.push_back({++last_, mark});
  links_ = std::move(links);
}

bool LaunchFate::settled_well(std::uint64_t place) {
  std::vector<Link> links;
  {
    const std::lock_guard lock(mutex_);
    if (!running_.empty() && running_.front() <= place) return false;
    if (!error_.empty() && failed_at_ <= place) return false;
    links = links_;
  }
  return std::all_of(links.begin(), links.end(), [place](const Link& link) {
    return link.at > place || link.from.fate->settled_well(link.from.place);
  });
}

std::string LaunchFate::failure(std::uint64_t place) {
  std::vector<Link> links;
  {
    const std::lock_guard lock(mutex_);
    if (!error_.empty() && failed_at_ <= place) return error_;
    links = links_;
  }
  for (const Link& link : links) {
    if (link.at > place) break;
    if (std::string inherited = link.from.fate->failure(link.from.place); !inherited.empty()) return inherited;
  }
  return {};
}

}  // namespace infeed
