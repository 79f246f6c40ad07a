#include "worker/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "worker/process.h"

namespace infeed {
namespace {

union PassedFd {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

bool send_message(int socket, const void* data, std::size_t size, int fd_to_pass) noexcept {
  iovec part{.iov_base = const_cast<void*>(data), .iov_len = size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  PassedFd control{};
  if (fd_to_pass >= 0) {
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    std::memcpy(CMSG_DATA(&control.header), &fd_to_pass, sizeof fd_to_pass);
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

bool receive_message(int socket, void* data, std::size_t size, Descriptor* passed) noexcept {
  iovec part{.iov_base = data, .iov_len = size};
  PassedFd control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (passed != nullptr && header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    *passed = Descriptor(fd);
  }
  return got == static_cast<ssize_t>(size);
}

}  // namespace

void Channel::open(Channel& a, Channel& b) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw_cannot_start("no socket to the process that restarts workers", errno);
  a = Channel(Descriptor(ends[0]));
  b = Channel(Descriptor(ends[1]));
}

void Channel::shut() noexcept {
  if (socket_.valid()) ::shutdown(socket_.fd(), SHUT_RDWR);
  close();
}

bool Channel::send(const ZygoteCommand& command) const noexcept {
  return send_message(fd(), &command, sizeof command, -1);
}

bool Channel::send(const ZygoteReply& reply, int fd_to_pass) const noexcept {
  return send_message(fd(), &reply, sizeof reply, fd_to_pass);
}

bool Channel::receive(ZygoteCommand& command) const noexcept {
  return receive_message(fd(), &command, sizeof command, nullptr);
}

bool Channel::receive(ZygoteReply& reply, Descriptor& passed, int timeout_ms) const noexcept {
  pollfd entry{.fd = fd(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&entry, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0 && receive_message(fd(), &reply, sizeof reply, &passed);
}

}  // namespace infeed
